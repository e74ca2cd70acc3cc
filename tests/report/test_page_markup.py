"""The page as text: all parts are there, in order, and no name of the user's becomes markup."""

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from made_up_report import STUDIES, report_dataset

from incrt.report.claims import judge
from incrt.report.figures.all_charts import make_charts
from incrt.report.page import render
from incrt.report.selection import Runs
from incrt.report.tables import make_tables

HOSTILE = "</script><b>"
VARIANT = '<img src=x onerror="alert(1)">'


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.elements[-1][0] if self.elements else "", []).append(data)


@pytest.fixture(scope="module")
def page() -> Page:
    studies = {"main": STUDIES["main"], "robustness": STUDIES["robustness"], HOSTILE: (("a", VARIANT), {2.0: 50})}
    dataset = replace(report_dataset(["memory"], studies, seeds=3), title="A report & <more>")
    runs = {"memory": Runs(dataset, "memory")}
    found = [{preset: make(each) for preset, each in runs.items()} for make in (judge, make_tables, make_charts)]
    return Page(render(dataset, *found))  # type: ignore[arg-type]


def test_names_are_words_and_nothing_else(page: Page) -> None:
    kinds = Counter(tag for tag, _ in page.elements)
    assert kinds["img"] == kinds["b"] == 0
    assert kinds["script"] == 3
    assert "A report & <more>" in page.texts["title"]
    boxes = [attributes["value"] for tag, attributes in page.elements if tag == "input"]
    assert {HOSTILE, VARIANT} <= set(boxes)
    charts = json.loads(page.texts["script"][0])
    assert HOSTILE in [study for chart in charts for study in chart["studies"]]


def test_every_part_is_there_and_every_panel_has_its_data(page: Page) -> None:
    named = [attributes["id"] for tag, attributes in page.elements if tag == "section" and "id" in attributes]
    assert named == ["verdicts", "figures", "tables", "certificates", "failed", "configuration", "repeat"]
    levels = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3", "h4", "h5"}]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    charts = json.loads(page.texts["script"][0])
    plots = [attributes for _, attributes in page.elements if attributes.get("class") == "plot"]
    places = [(int(plot["data-chart"] or -1), int(plot["data-panel"] or -1)) for plot in plots]
    assert places == [(number, panel) for number, chart in enumerate(charts) for panel in range(len(chart["panels"]))]
    assert all(plot["aria-label"] for plot in plots)
