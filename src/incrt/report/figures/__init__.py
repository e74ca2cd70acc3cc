"""Figures, drawn with matplotlib.

There is one renderer. A document needs PNG and SVG files that are the same on every machine, so matplotlib is needed;
the page shows its SVG. Marks that can be pointed at would take a second renderer, a grammar of charts that both can
draw, and 4.8 MB of JavaScript a page. What such marks would say stands in a table below the figure instead.
"""

from incrt.report.figures.of_run import heads_figure, tracking_figure

__all__ = ["heads_figure", "tracking_figure"]
