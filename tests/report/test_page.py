"""The page in a real browser: it shows, filters, prints and fits, and no name of the user's harms it."""

import base64
import os
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from made_up_report import STUDIES, report_dataset
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

from incrt.report.claims import judge
from incrt.report.figures.all_charts import make_charts
from incrt.report.page import render
from incrt.report.selection import Runs
from incrt.report.tables import make_tables

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
PRESETS = ("paper", "memory")
HOSTILE = "</script><b>"
SHOWN_ROWS = "[...document.querySelectorAll('#tables tbody tr')].filter((row) => row.offsetParent)"
LOADED = "[...document.images].filter((each) => each.complete && each.naturalWidth).length"

if not (CHROMIUM.exists() and DRIVER.exists()) and "CI" not in os.environ:
    pytest.skip("Chromium and its driver are not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    studies = {name: STUDIES[name] for name in ("main", "static", "k_max", "robustness")}
    studies[HOSTILE] = (("runtime", "<img src=x onerror=alert(1)>", "\"'&amp;"), {2.0: 50})
    dataset = report_dataset(PRESETS, studies, seeds=4)
    # The episodes of one run are enough, and in the second preset one study's figures: drawing all takes long.
    dataset = replace(dataset, episodes=dict(list(dataset.episodes.items())[:1]), title="A report & more")
    verdicts = {preset: judge(Runs(dataset, preset)) for preset in PRESETS}
    tables = {preset: make_tables(Runs(dataset, preset)) for preset in PRESETS}
    charts = {preset: make_charts(Runs(dataset, preset)) for preset in PRESETS}
    charts["memory"] = [chart for chart in charts["memory"] if "k_max" in chart.studies]
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(dataset, verdicts, tables, charts), encoding="utf-8")
    return path


class Browser:
    """Headless Chromium with the page."""

    def __init__(self, page: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        self.driver.set_script_timeout(60)
        self.width(1280)
        self.driver.get(page.as_uri())

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(f"return {script}", *arguments)

    def width(self, pixels: int) -> None:
        metrics = {"width": pixels, "height": 900, "deviceScaleFactor": 1, "mobile": pixels < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def media(self, kind: str = "", scheme: str = "light") -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": features})

    def tick(self, name: str, value: str) -> None:
        boxes = "[...document.getElementsByName(arguments[0])]"
        self.js(f"{boxes}.find((box) => box.value === arguments[1]).click()", name, value)

    def seen(self, selector: str) -> int:
        """How many elements are shown."""
        return len(self.texts(selector))

    def count(self, selector: str) -> int:
        return int(self.js("document.querySelectorAll(arguments[0]).length", selector))

    def texts(self, selector: str) -> list[str]:
        """Of the elements that are shown."""
        shown = "[...document.querySelectorAll(arguments[0])].filter((each) => each.checkVisibility())"
        return list(self.js(f"{shown}.map((each) => each.textContent)", selector))

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def started(page: Path) -> Iterator[Browser]:
    browser = Browser(page)
    browser.media()
    yield browser
    browser.driver.quit()


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    yield started
    started.js("document.getElementById('reset').click()")
    started.media()
    started.width(1280)
    assert started.errors() == []


def test_figures_are_loaded_when_they_come_near_and_nothing_is_fetched(browser: Browser) -> None:
    figures = browser.seen("figure img")
    assert figures > 10
    assert browser.js(LOADED) < figures
    assert browser.js("document.images[0].clientWidth") == 720
    browser.js("[...document.images].at(-1).scrollIntoView()")
    last = "[...document.images].at(-1)"
    WebDriverWait(browser.driver, 10).until(lambda _: browser.js(f"{last}.complete && {last}.naturalWidth > 500"))
    fetched = "performance.getEntriesByType('resource').map((each) => each.name)"
    assert [each for each in browser.js(fetched) if not each.startswith("data:")] == []


def test_the_page_reads_in_order(browser: Browser) -> None:
    levels = browser.js("[...document.querySelectorAll('h1,h2,h3,h4')].map((each) => Number(each.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    headings = browser.js("[...document.querySelectorAll('h2')].map((each) => each.textContent)")
    assert headings == [
        *("What holds", "Filter figures and tables", "Figures", "Tables", "Certificates", "Failed runs"),
        *("Configuration", "How to repeat it"),
    ]
    assert browser.js("document.querySelectorAll('th:not([scope])').length") == 0
    assert browser.count("img:not([alt]), figure:not([aria-labelledby])") == 0
    said = browser.js("[...document.querySelectorAll('.judgement')].map((each) => each.textContent.slice(2))")
    assert set(said) <= {"holds", "does not hold", "cannot tell"}
    assert len(said) > 20


def test_verdicts_and_counts_are_there(browser: Browser) -> None:
    counts = dict(zip(browser.texts(".counts dt"), map(int, browser.texts(".counts dd")), strict=True))
    assert counts["runs"] == counts["finished"] + counts["failed"]
    assert counts["failed"] == 3
    assert counts["of them incomplete"] == 0  # for a run whose training failed is one that is over
    assert "the loss is not finite" in browser.js("document.getElementById('failed').textContent")
    assert "incrt study run k_max --preset memory" in browser.js("document.getElementById('repeat').textContent")


def test_commands_and_their_times_are_there(browser: Browser) -> None:
    assert browser.texts("#repeat caption") == ["Commands and their times, preset memory"]
    assert browser.texts("#repeat tbody :is(th, td)")[-3:] == ["10.0 to 13.5", "720 to 972", "360 to 486"]


def test_a_regime_is_chosen_and_all_shown_again(browser: Browser) -> None:
    shown = ("#tables tbody tr", "figure")
    before = [browser.seen(each) for each in shown]
    browser.tick("tau_z", "5")
    assert "τz 5" in browser.js("document.getElementById('state').textContent")
    regimes = browser.js(f"{SHOWN_ROWS}.flatMap((row) => JSON.parse(row.dataset.about).tau_z)")
    assert set(regimes) == {"5"}
    titles = browser.texts("figure h4")
    assert "The head-count cap Kmax" not in titles  # all its runs are at 2 s
    assert "Runtime heads, seed by seed" in titles
    browser.js("document.getElementById('reset').click()")
    assert [browser.seen(each) for each in shown] == before


def test_a_variant_is_chosen(browser: Browser) -> None:
    browser.tick("variant", "static K=8")
    variants = browser.js(f"{SHOWN_ROWS}.flatMap((row) => JSON.parse(row.dataset.about).variant || [])")
    assert set(variants) == {"static K=8"}
    titles = browser.texts("figure h4")
    assert "Runtime heads, seed by seed" not in titles
    assert "Study static: headroom closed" in titles


def test_a_study_and_a_preset_are_chosen(browser: Browser) -> None:
    browser.tick("study", "k_max")
    browser.tick("preset", "memory")
    titles = browser.texts("figure h4")
    assert titles == ["The head-count cap Kmax", "Study k_max: return while training"]
    captions = browser.texts("#tables caption")
    assert captions
    assert all("memory" in each for each in captions)
    assert browser.texts("#certificates tbody th") == ["k_max"]


def test_numbers_of_a_figure(browser: Browser) -> None:
    browser.js("document.querySelector('.numbers summary').click()")
    names = browser.texts(".numbers tbody th")
    assert {"runtime, τz = 1 s", "the paper: static, τz = 5 s", "clairvoyant, τz = 2 s"} <= set(names)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_scrolls_down_only_and_figures_in_their_boxes(browser: Browser, scheme: str) -> None:
    browser.width(375)
    browser.media(scheme=scheme)
    assert browser.js("document.documentElement.scrollWidth") == 375
    widths = browser.js(
        "[...document.querySelectorAll('figure > .box')].map((box) => [box.clientWidth, box.scrollWidth])"
    )
    assert all(shown < 375 < whole for shown, whole in widths)


def test_dark_changes_the_page_and_figures_stand_on_white(browser: Browser) -> None:
    colours = []
    for scheme in ("light", "dark"):
        browser.media(scheme=scheme)
        paper = browser.js("getComputedStyle(document.body).backgroundColor")
        colours.append((paper, browser.js("getComputedStyle(document.querySelector('figure > .box')).backgroundColor")))
    assert colours == [("rgb(253, 253, 252)", "rgb(255, 255, 255)"), ("rgb(20, 23, 26)", "rgb(255, 255, 255)")]


def test_print_is_light_and_shows_everything(browser: Browser) -> None:
    figures, rows = browser.seen("figure"), browser.seen("#tables tbody tr")
    browser.media("print", "dark")
    assert (browser.seen("figure"), browser.seen("#tables tbody tr")) == (figures, rows)
    assert browser.seen("#filters") == browser.seen(".state") == 0
    assert browser.js("getComputedStyle(document.body).color") == "rgb(27, 30, 33)"
    browser.media()
    pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF")
    assert browser.js(LOADED) == figures


def test_names_are_words_and_nothing_else(browser: Browser) -> None:
    assert browser.js("[...document.getElementsByName('study')].map((box) => box.value)")[-1] == HOSTILE
    assert browser.count("b, img:not(figure img)") == 0
    browser.tick("study", HOSTILE)
    assert browser.texts("figure h4")[0] == f"Study {HOSTILE}: results of the variants"
    assert browser.js("document.title") == "A report & more"


def test_the_page_is_whole_without_scripts(browser: Browser, page: Path) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser.driver.get(page.as_uri())
    shown = browser.seen("figure img"), browser.seen("#filters"), browser.seen("#tables tbody tr") > 0
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    browser.driver.get(page.as_uri())
    assert shown == (browser.seen("figure img"), 0, True)
