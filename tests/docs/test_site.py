"""The site builds without a warning, and its reference leaves out no public name."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import incrt
import incrt.engine
import incrt.sb3
from incrt.cli.settings import setting_rows

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="needs the extra docs")
def test_the_site_builds_strictly_and_holds_what_the_documents_link_to(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    reference = (tmp_path / "reference" / "index.html").read_text(encoding="utf-8")
    for row in setting_rows("memory"):
        assert f"<code>{row['field']}</code>" in reference
    assert "Weight of |e|^2 in the reward." in reference  # a bar inside a cell
    assert ":func:" not in reference
    assert (tmp_path / "files" / "results" / "figures" / "memory" / "figure-4-seeds.png").exists()
    for page in tmp_path.rglob("*.html"):  # without a network all is there but mermaid's drawings, which stay text
        assert not re.search(r"<(script|link|img)[^>]*(src|href)=\"?https?:", page.read_text(encoding="utf-8")), page


def test_the_reference_has_every_public_name() -> None:
    named = set(re.findall(r"^::: (\S+)$", (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), re.MULTILINE))
    public = {f"incrt.{name}" for name in incrt.__all__} | {f"incrt.sb3.{name}" for name in incrt.sb3.__all__}
    engine = {f"incrt.engine.{name}" for name in incrt.engine.__all__ if name not in incrt.__all__}
    assert public | engine <= named
