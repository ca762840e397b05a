"""Tests `python -m lab.simulation.planted`: it prints and writes the results of earlier hunts."""

from __future__ import annotations

import shutil
from pathlib import Path
from runpy import run_path

import pytest
from typer.testing import CliRunner

from lab.simulation.planted import __main__ as command
from lab.simulation.planted import found
from lab.simulation.planted.__main__ import app
from lab.simulation.planted.all_planted import ALL_PLANTED
from lab.simulation.planted.found import FOUND, FoundBug
from lab.simulation.planted.kept import HuntedWorld, KeptHunt, ShrunkBug
from lab.simulation.planted.table import as_markdown
from lab.simulation.planted.writing import write_found

ROOT = Path(__file__).parents[3]
BUG, MISSED, NOT_SHRUNK = "op-message-first", "recovered-log-unsynced", "pull-offset-committed"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a file with a bug that the second world found, a bug that two worlds missed, and a bug without a shrunk plan."""
    monkeypatch.setattr(found, "FOUND", {})
    monkeypatch.setattr(command, "play_one", None)
    kept = KeptHunt(tmp_path / "planted.jsonl")
    for seed, promise in ((4, None), (7, "An acknowledged order gets its credit once.")):
        kept.add(HuntedWorld(BUG, seed, 0.33, promise))
        kept.add(HuntedWorld(MISSED, seed, 0.4))
    kept.add(ShrunkBug(BUG, 7, 3, 80))
    kept.add(HuntedWorld(NOT_SHRUNK, 4, 0.5, "A transaction has one outcome."))
    return tmp_path / "planted.jsonl"


@pytest.mark.parametrize(("names", "status"), [([BUG], 0), ([BUG, NOT_SHRUNK], 0), ([BUG, MISSED], 1), (["no-such-bug"], 2)])
def test_a_hunt_of_no_worlds_tells_what_is_kept(results: Path, names: list[str], status: int) -> None:
    told = CliRunner().invoke(app, [*names, "--worlds", "0", "--results", str(results)])
    assert told.exit_code == status
    assert (" | 2 | 0.7 | 3 | An acknowledged order gets its credit once. |" in told.output) == (status != 2)
    assert (" | 1 | 0.5 | - | A transaction has one outcome. |" in told.output) == (NOT_SHRUNK in names)
    assert (" | not in 2 | 0.8 | - | more worlds are needed |" in told.output) == (MISSED in names)


def test_results_are_written_into_module_and_page(tmp_path: Path) -> None:
    for name in ("lab/simulation/planted/found.py", "docs/simulation-planted.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changed = {**FOUND, BUG: FoundBug(2, 2, "Kept.", 0.7, 3), MISSED: FoundBug(2, None, "more worlds are needed", 0.8)}
    write_found(tmp_path, changed)
    written = run_path(str(tmp_path / "lab/simulation/planted/found.py"), run_name="written")["FOUND"]
    assert str(written) == str(changed)
    page = (tmp_path / "docs/simulation-planted.md").read_text()
    assert page.endswith(as_markdown(ALL_PLANTED, found=changed))


def test_a_bug_that_no_other_test_notices_is_named_above_the_tables() -> None:
    told = as_markdown(ALL_PLANTED, noticed_by={BUG: None, MISSED: "tests/a.py::test_it"})
    assert told.startswith("## All bugs\n")
    assert f"No other test notices `{BUG}`.\n" in told.split("## ")[1]
