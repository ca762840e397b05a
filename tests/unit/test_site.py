"""The documentation site: it builds without a warning, has every chapter, and its diagrams use the code's names."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker.transaction.states import TRANSITIONS, State
from tutorials.pages import chapters

ROOT = Path(__file__).resolve().parents[2]
STATES = (ROOT / "docs" / "diagrams.md").read_text().split("stateDiagram-v2")[1].split("```")[0]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_has_every_chapter_and_the_api(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    pages = [tmp_path / "tutorials" / chapter.parent.name / "index.html" for chapter in chapters()]
    assert [page for page in pages if not page.exists()] == []
    api = (tmp_path / "reference" / "client.html").read_text()
    assert "send_message_in_transaction" in api
    assert "(<code>broker/transaction/states.py</code>)" in (tmp_path / "diagrams.html").read_text()


def test_the_states_of_the_diagram_are_those_of_the_code() -> None:
    assert set(re.findall(r"\b[A-Z_]{4,}\b", re.sub(r":.*", "", STATES))) == {state.name for state in State}


def test_each_change_of_state_in_the_code_is_an_arrow_of_the_diagram() -> None:
    arrows = set(re.findall(r"^\s*(\S+) --> (\w+):", STATES, re.MULTILINE))
    changes = {(change.before.name if change.before else "[*]", change.after.name) for change in TRANSITIONS.values()}
    assert changes <= arrows
