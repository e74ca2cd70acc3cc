"""Figures. A chart is described once (``chart``) and drawn twice: by plotly.js on the page, by matplotlib as files.

The page needs marks that can be pointed at and filtered, a document needs PNG and SVG files that are the same on every
machine, and neither library makes both without a browser. So there are two renderers of one small grammar.
"""

from incrt.report.figures.of_run import heads_figure, tracking_figure

__all__ = ["heads_figure", "tracking_figure"]
