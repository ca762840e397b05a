"""The documentation site builds without a warning and has every chapter. Its diagrams use the code's names."""

import dataclasses
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from deploy.scripts.site_diagrams import DRAWINGS, SCHEMES, diagrams_of_site
from deploy.scripts.site_pages import page_of
from deploy.scripts.translations import translations
from rocketmq_broker.transaction.states import TRANSITIONS, State
from tutorials.pages import chapters

ROOT = Path(__file__).resolve().parents[3]
STATES = (ROOT / "docs" / "diagrams.md").read_text().split("stateDiagram-v2")[1].split("```")[0]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_has_every_chapter_and_the_api(site: Path) -> None:
    pages = [site / "tutorials" / chapter.parent.name / "index.html" for chapter in chapters()]
    pages += [site / page_of(str(page.relative_to(ROOT).with_suffix(".html"))) for page in translations()]
    assert [page for page in pages if not page.exists()] == []
    assert "send_message_in_transaction" in (site / "reference" / "transactions.html").read_text()
    assert "(<code>broker/rocketmq_broker/transaction/states.py</code>)" in (site / "diagrams.html").read_text()


class Asked(HTMLParser):
    """The addresses that a browser loads with a page, without a click: scripts, styles, fonts, images."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        is_for_readers = tag == "a" or (tag == "link" and found.get("rel") in {"canonical", "next", "prev"})
        if not is_for_readers:
            self.addresses += [value for name in ("src", "href", "srcset", "data") if (value := found.get(name))]
        self.addresses += ["a script from another host"] if found.get("class") == "mermaid" else []


def asked_by(page: Path) -> list[str]:
    """Returns the addresses that a browser loads with the page. The theme loads Mermaid from unpkg.com for class `mermaid`."""
    asked = Asked()
    asked.feed(page.read_text())
    return asked.addresses


@pytest.mark.slow
def test_the_site_asks_no_other_host_for_anything(site: Path) -> None:
    asked = {address for page in site.rglob("*.html") for address in asked_by(page)}
    styles = "".join(style.read_text() for style in site.rglob("*.css"))
    asked |= set(re.findall(r"url\([\"']?([^)\"']+)|@import", styles))
    assert any(address.endswith("-dark.svg#only-dark") for address in asked)
    assert [address for address in asked if re.match(r"(https?:)?//|a script from", address)] == []


def test_each_diagram_is_drawn_as_it_is_written_and_no_drawing_is_left_over() -> None:
    diagrams = diagrams_of_site()
    assert [diagram.name for diagram in diagrams if not diagram.is_drawn] == [], "draw them again: make diagrams"
    assert set(DRAWINGS.iterdir()) == {diagram.drawing(scheme) for diagram in diagrams for scheme in SCHEMES}


def test_a_diagram_whose_text_changed_is_no_longer_drawn() -> None:
    diagram = diagrams_of_site()[0]
    assert not dataclasses.replace(diagram, mermaid=diagram.mermaid + "  %% more\n").is_drawn


def test_the_states_of_the_diagram_are_those_of_the_code() -> None:
    assert set(re.findall(r"\b[A-Z_]{4,}\b", re.sub(r":.*", "", STATES))) == {state.name for state in State}


def test_each_change_of_state_in_the_code_is_an_arrow_of_the_diagram() -> None:
    arrows = set(re.findall(r"^\s*(\S+) --> (\w+):", STATES, re.MULTILINE))
    changes = {(change.before.name if change.before else "[*]", change.after.name) for change in TRANSITIONS.values()}
    assert changes <= arrows
