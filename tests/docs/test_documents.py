"""Links in the documents lead somewhere, and what is folded away is seen when it is opened."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), ROOT / "results" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(text: str) -> set[str]:
    """What a page of GitHub names its headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(path: Path) -> list[str]:
    """The links of a document to files or headings that are not there."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = []
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
        file, _, anchor = target.partition("#")
        there = path.parent / file if file else path
        if file.startswith(("http://", "https://")):
            continue
        if not there.exists() or (anchor and anchor not in anchors(there.read_text(encoding="utf-8"))):
            found.append(target)
    return found


def badly_folded(text: str) -> list[str]:
    """The summaries of what a page would not show as it should: Markdown is read there only between empty lines."""
    blocks = re.findall(r"^<details>\n(.*?)^</details>$", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == text.count("<details") == text.count("</details")
    good = re.compile(r"<summary>[^\n]*</summary>\n\n\S.*\S\n\n", re.DOTALL)
    return [block.splitlines()[0] for block in blocks if not good.fullmatch(block)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken_links(path) == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_folded_away_is_shown_when_it_is_opened(path: Path) -> None:
    assert badly_folded(path.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One, two\n[a](#one-two) [b](#one-three) [c](none.md) [d](page.md#one-two)\n`[e](f)`\n")
    assert broken_links(page) == ["#one-three", "none.md"]


def test_a_table_without_an_empty_line_before_it_is_found() -> None:
    folded = "<details>\n<summary>{}</summary>\n{}| a |\n| --- |\n\n</details>\n"
    assert badly_folded(folded.format("good", "\n") + folded.format("bad", "")) == ["<summary>bad</summary>"]
