"""Numbers as people read them; what is not known is None."""

from incrt.report.statistics import Comparison, Rate, Summary


def number(value: float | None, digits: int = 2) -> str | None:
    """With a real minus sign, and no sign before a zero."""
    if value is None:
        return None
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "\N{MINUS SIGN}")


def plus_minus(mean: float | None, half_width: float | None) -> str | None:
    """A mean with half its interval, where there is one."""
    return number(mean) if half_width is None else f"{number(mean)} ± {number(half_width)}"


def mean_text(summary: Summary) -> str | None:
    """The mean with Student's interval."""
    return plus_minus(summary.mean, summary.half_width)


def interval_text(value: float | None, low: float | None, high: float | None, digits: int = 2) -> str | None:
    """A value and its interval, where there is one."""
    if value is None or low is None or high is None:
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def difference_text(comparison: Comparison) -> str | None:
    """The difference of the means with Welch's interval."""
    return interval_text(comparison.difference, comparison.low, comparison.high)


def rate_text(rate: Rate) -> str | None:
    """A count of n with the interval of the rate in per cent."""
    if rate.low is None or rate.high is None:
        return None
    return f"{rate.count}/{rate.n} [{100 * rate.low:.0f}, {100 * rate.high:.0f}] %"


def p_text(p: float | None) -> str | None:
    """A p value; below a thousandth only that it is."""
    if p is None:
        return None
    return "<0.001" if p < 0.001 else f"{p:.3f}"
