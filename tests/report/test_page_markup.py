"""The page as text: all parts are there, in order, and no name of the user's becomes markup."""

import json
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from urllib.parse import unquote

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
    dataset = replace(report_dataset(["memory"], studies, seeds=3), title="A report & <more>", episodes={})
    runs = {"memory": Runs(dataset, "memory")}
    found = [{preset: make(each) for preset, each in runs.items()} for make in (judge, make_tables, make_charts)]
    return Page(render(dataset, *found))  # type: ignore[arg-type]


def test_names_are_words_and_nothing_else(page: Page) -> None:
    kinds = Counter(tag for tag, _ in page.elements)
    assert kinds["b"] == 0
    assert kinds["img"] == kinds["figure"]
    assert kinds["script"] == 1
    assert "A report & <more>" in page.texts["title"]
    boxes = [attributes["value"] for tag, attributes in page.elements if tag == "input"]
    assert {HOSTILE, VARIANT} <= set(boxes)
    about = [json.loads(attributes["data-about"] or "") for tag, attributes in page.elements if tag == "figure"]
    assert [HOSTILE] in [each["study"] for each in about]
    assert ["a", VARIANT] in [each["variant"] for each in about]


def test_every_part_is_there_and_every_figure_its_picture(page: Page) -> None:
    named = [attributes["id"] for tag, attributes in page.elements if tag == "section" and "id" in attributes]
    assert named == ["verdicts", "figures", "tables", "certificates", "failed", "configuration", "repeat"]
    levels = [int(tag[1]) for tag, _ in page.elements if tag in {"h1", "h2", "h3", "h4", "h5"}]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all("scope" in attributes for tag, attributes in page.elements if tag == "th")
    pictures = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(pictures) > 5
    for picture in pictures:
        kind, _, svg = (picture["src"] or "").partition(",")
        assert kind == "data:image/svg+xml"
        assert unquote(svg).startswith("<?xml")
        assert unquote(svg).strip().endswith("</svg>")
        assert picture["alt"]


def test_every_figure_has_its_numbers_in_words(page: Page) -> None:
    texts = dict.fromkeys(page.texts["th"] + page.texts["td"])
    assert {"Measured by", "a, seed 42, τ", "headroom closed"} <= texts.keys()
