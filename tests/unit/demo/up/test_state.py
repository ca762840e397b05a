"""Only one `make up` runs per folder. Tests the error of a second `make up`."""

import os
from pathlib import Path

import pytest

from demo.errors import DemoError
from demo.up.state import RunsAlready, StateFile, UpState, read_state

STATE = UpState(
    os.getpid(), "http://127.0.0.1:8088", {"order service": "http://127.0.0.1:8080"}, {"broker": os.getpid(), "redis": 2**22}
)


def test_a_second_one_is_refused_and_says_what_runs(tmp_path: Path) -> None:
    with StateFile(tmp_path) as first:
        first.write(STATE)
        with pytest.raises(RunsAlready) as refused, StateFile(tmp_path):
            pass
    said = str(refused.value)
    assert f"`make up` is already running as process {os.getpid()}: http://127.0.0.1:8088" in said
    assert "order service: http://127.0.0.1:8080" in said
    assert f"processes: broker ({os.getpid()})\n" in said
    assert f"kill {os.getpid()}" in said


def test_a_second_one_that_comes_early_is_told_to_wait(tmp_path: Path) -> None:
    with StateFile(tmp_path), pytest.raises(RunsAlready, match="is starting or stopping"), StateFile(tmp_path):
        pass


def test_what_one_left_that_was_killed_keeps_nobody_out(tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "running.json").write_text('{"pid": 1}')
    with StateFile(tmp_path) as fresh:
        assert not (tmp_path / "running.json").exists()
        fresh.write(STATE)
        assert read_state(tmp_path / "running.json") == STATE
    assert not (tmp_path / "running.json").exists()
    with StateFile(tmp_path):
        pass


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "address": "", "addresses": [], "processes": {}}']
)
def test_a_file_that_is_no_state_is_passed_over(content: str, tmp_path: Path) -> None:
    path = tmp_path / "running.json"
    path.write_text(content)
    assert read_state(path) is None


def test_a_link_is_never_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "lock").symlink_to(elsewhere)
    with pytest.raises(DemoError, match="cannot use the folder"), StateFile(folder):
        pass
    (folder / "lock").unlink()
    (folder / "running.new").symlink_to(elsewhere)
    (folder / "running.json").symlink_to(elsewhere)
    assert read_state(folder / "running.json") is None
    with StateFile(folder) as fresh:
        fresh.write(STATE)
    assert elsewhere.read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DemoError, match="cannot use the folder"), StateFile(tmp_path / "file" / "up"):
        pass


def test_the_folder_is_for_its_user_alone_though_it_was_made_before(tmp_path: Path) -> None:
    folder = tmp_path / "up"
    folder.mkdir(mode=0o755)
    with StateFile(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
