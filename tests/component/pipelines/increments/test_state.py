"""Tests that an interrupted run leaves the last valid state, and that two runs cannot use the folder at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import StateUnusable
from pipelines.increments.marks import Marks
from pipelines.increments.state import VERSION, IncrementState, Manifest

BOOKS = {"orders": "/data/orders.db"}


def publish(state: IncrementState, as_of_ms: int, window: str | None = None) -> Manifest:
    """Writes the files of a successful run, including its manifest. Returns the manifest."""
    with state.taken():
        folder = state.new_run(as_of_ms)
        (folder / "open.parquet").write_bytes(b"open")
        before = state.read(BOOKS)
        windows = {} if before is None else before.windows
        if window is not None:
            state.window(folder.name, window).mkdir(parents=True)
            windows = {**windows, window: folder.name}
        manifest = Manifest(folder.name, as_of_ms, BOOKS, Marks(orders=as_of_ms), None, windows)
        state.replace(manifest)
        return manifest


def folders(state: IncrementState) -> set[str]:
    return {path.name for path in state.folder.glob("run-*")}


def test_a_folder_without_a_run_has_nothing(tmp_path: Path) -> None:
    assert IncrementState(tmp_path / "new" / "state").read(BOOKS) is None


def test_the_next_good_run_removes_what_one_that_was_broken_off_has_left(tmp_path: Path) -> None:
    state = IncrementState(tmp_path)
    publish(state, 1)
    with state.taken():
        state.new_run(2)
    latest = publish(state, 3)
    assert folders(state) == {latest.run}


def test_windows_that_later_runs_did_not_write_stay(tmp_path: Path) -> None:
    state = IncrementState(tmp_path)
    first = publish(state, 1, window="7")
    latest = publish(state, 2, window="8")
    assert folders(state) == {first.run, latest.run}
    assert latest.windows == {"7": first.run, "8": latest.run}


def test_two_runs_cannot_have_one_folder_at_a_time(tmp_path: Path) -> None:
    with (
        IncrementState(tmp_path).taken(),
        pytest.raises(StateUnusable, match=f"^state {tmp_path}: another run is using it; wait until it has finished$"),
        IncrementState(tmp_path).taken(),
    ):
        pass
    with IncrementState(tmp_path).taken():
        pass


KILLED_WHILE_IT_WRITES = """
import os, signal, sys
from pathlib import Path
from pipelines.increments.state import IncrementState
state = IncrementState(Path(sys.argv[1]))
with state.taken():
    (state.new_run(2) / "open.parquet").write_bytes(b"half of i")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_run_that_is_killed_gives_the_folder_back_and_leaves_the_last_good_state(tmp_path: Path) -> None:
    state = IncrementState(tmp_path)
    good = publish(state, 1)
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_IT_WRITES, tmp_path], check=False)
    assert killed.returncode == -9
    assert len(folders(state)) == 2
    with state.taken():
        assert state.read(BOOKS) == good
    assert (tmp_path / good.run / "open.parquet").read_bytes() == b"open"


def test_a_state_about_other_books_is_refused_with_what_differs(tmp_path: Path) -> None:
    state = IncrementState(tmp_path)
    publish(state, 1)
    with pytest.raises(
        StateUnusable,
        match=r"belongs to other databases or stores \(orders: /data/orders.db before, /other.db now\); use --full$",
    ):
        state.read({"orders": "/other.db"})


@pytest.mark.parametrize("content", ["{", "[]", '{"run": 1}'])
def test_a_manifest_that_cannot_be_read_is_one_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(StateUnusable, match="use --full"):
        IncrementState(tmp_path).read(BOOKS)


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    state = IncrementState(tmp_path)
    manifest = publish(state, 1)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace(f'"version": {VERSION}', '"version": 99'))
    with pytest.raises(StateUnusable, match="has version 99, not 3; use --full"):
        state.read(manifest.books)


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(StateUnusable, match=f"^cannot use the folder {tmp_path}/file/state for the state: Not a directory$"),
        IncrementState(tmp_path / "file" / "state").taken(),
    ):
        pass
