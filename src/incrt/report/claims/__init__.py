"""The paper's claims, one by one, and what our runs of one preset say to them.

Every verdict follows from rules that were fixed before the runs. Delta% counts down: the lower, the better.

Said of every run or event
    One exception refutes it. Without one it holds if each of the paper's regimes has at least as many runs as the paper
    had and none was given up; what is proved, and so can only be contradicted, holds as soon as it was seen once.
Better than
    It holds if the whole 95 % Welch interval of the difference lies below zero, whatever its size; what is said of it
    names the paper's size where the interval excludes that. It does not hold if the interval lies above zero, or if it
    contains zero and excludes half of what the paper reports. Otherwise the runs cannot tell. What the paper reports is
    taken as the ratio of the two errors: where all errors are small, so is the difference that the same ratio makes.
Match or exceed
    The margin is 5 % of the others' mean error. It holds if the whole 95 % Welch interval is below the margin, and does
    not hold if it is wholly beyond.
A rate
    It does not hold if the rate is below the paper's and Fisher's exact test of the two counts says p < 0.05; else it
    holds if the lower end of the Wilson interval is above 5 %.
No influence
    The margin is the standard deviation over the seeds of what is compared with. It holds if the 95 % interval of the
    difference lies within the margin; it does not hold if the interval excludes zero and the difference is beyond it.
Smaller spread
    It holds if the standard deviation is the smaller one and Brown-Forsythe's test says p < 0.05; it does not hold if
    it is the larger one with such a p.
Where runs diverged
    They are in no mean and no spread. Of a side that lost the larger part of its runs nothing good is believed, of one
    that lost the smaller part nothing bad, and where both lost unequal parts not that they do the same.
Of several differences or spreads
    All must hold, which needs no correction; one that does not hold refutes the whole. So that chance does not refute
    where many are tried, refuting asks for 1 - 0.05/m in place of 95 %, and p < 0.05/m, with m tries.
"""

from incrt.report.claims import heads, performance, sweeps
from incrt.report.claims.rules import Verdict
from incrt.report.selection import Runs


def judge(runs: Runs) -> list[Verdict]:
    """A verdict on every claim."""
    first, last = (performance.verdicts, heads.schedule, sweeps.verdicts), (performance.spreads, sweeps.other_settings)
    return [verdict for subject in (*first, heads.guarantees, *last) for verdict in subject(runs)]
