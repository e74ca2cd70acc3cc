"""What the site needs besides the documents as they stand on GitHub; mkdocs.yml names this file.

- README.md is the first page.
- Links that lead out of docs/ lead somewhere on the site too: what they name is copied below files/.
- The table of settings is made from the configuration itself, so that a field's sentence is written once.
- What is folded away holds Markdown, as on GitHub.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from incrt.cli.settings import setting_rows

ROOT = Path(__file__).parents[1]
SETTINGS = "<!-- settings -->"
"""Where a document wants the table of settings."""
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)")
_ROLE = re.compile(r":(?:attr|class|func|meth|mod):(?=<code>)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the first page, and all that is linked to outside docs/, and so on from there."""
    files.append(File.generated(config, "index.md", abs_src_path=str(ROOT / "README.md")))
    known = {file.src_uri for file in files}
    waiting = ["CONTRIBUTING.md", "CHANGELOG.md", *(source_of(file.src_uri) for file in files)]
    while waiting:
        source = waiting.pop()
        if (place := place_on_site(source)) not in known:
            known.add(place)
            files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
        if source.endswith(".md"):
            waiting += [named for named in linked_files(source) if place_on_site(named) not in known]
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page's text, with links for the site and with its tables."""
    place = page.file.src_uri
    source = source_of(place)

    def moved(link: re.Match[str]) -> str:
        named = named_file(source, link[0])
        return posixpath.relpath(place_on_site(named), posixpath.dirname(place)) if named else link[0]

    text = _LINK.sub(moved, markdown).replace("<details>", '<details markdown="1">')
    return text.replace(SETTINGS, settings_table()) if SETTINGS in text else text


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page without the roles that docstrings give to names."""
    return _ROLE.sub("", html)


def place_on_site(source: str) -> str:
    """Where a file of the repository stands on the site."""
    if source == "README.md":
        return "index.md"
    return source.removeprefix("docs/") if source.startswith("docs/") else f"files/{source}"


def source_of(place: str) -> str:
    """The file of the repository that stands there."""
    if place == "index.md":
        return "README.md"
    return place.removeprefix("files/") if place.startswith("files/") else f"docs/{place}"


def named_file(source: str, link: str) -> str | None:
    """The file of the repository that a link in a document names; a folder stands for its README."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (ROOT / path).is_dir() and (ROOT / path / "README.md").exists():
        path = posixpath.join(path, "README.md")
    is_ours = "://" not in link and not path.startswith("..") and (ROOT / path).is_file()
    return path if is_ours else None


def linked_files(source: str) -> Iterator[str]:
    """The files of the repository that a document links to."""
    for link in _LINK.findall((ROOT / source).read_text(encoding="utf-8")):
        if named := named_file(source, link):
            yield named


def settings_table() -> str:
    """Every field of a run with its value in each preset, as ``incrt settings`` lists them."""
    lines = ["| field | memory | paper | unit | accepted | meaning |", "|---|---|---|---|---|---|"]
    for memory, paper in zip(setting_rows("memory"), setting_rows("paper"), strict=True):
        value, other = _shown(memory["value"]), _shown(paper["value"])
        cells = [f"`{memory['field']}`", value, "" if other == value else other, memory["unit"], memory["accepted"]]
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in [*cells, memory["about"]]) + " |")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"({', '.join(_shown(each) for each in value)})" if isinstance(value, tuple) else str(value)
