"""Tests that the shell of a chapter ends all processes that it started, and returns without unnecessary delay."""

import time
from pathlib import Path

import psutil
import pytest

from tutorials import shell as shells
from tutorials.shell import Shell


def test_a_shell_with_nothing_in_the_background_waits_for_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells, "LAST_WORDS_S", 3600)
    shell = Shell(tmp_path)
    assert shell.run("echo done") == "done\n"
    shell.close()


def test_what_a_shell_has_started_has_time_for_last_words(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.run("bash -c 'trap \"sleep 0.2; echo over > last-words; exit\" TERM; echo > ready; while :; do sleep 0.05; done' &")
    shell.run("until [ -e ready ]; do sleep 0.02; done")
    shell.close()
    assert (tmp_path / "last-words").read_text() == "over\n"


def test_what_does_not_heed_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells, "LAST_WORDS_S", 0.1)
    shell = Shell(tmp_path)
    pid = int(shell.run("(trap '' TERM; echo > ready; exec sleep 600) & echo $!; until [ -e ready ]; do sleep 0.02; done"))
    stubborn = psutil.Process(pid)
    shell.close()
    while stubborn.is_running() and stubborn.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.02)


def test_each_shell_has_a_place_for_the_folders_of_pytest_and_removes_it(tmp_path: Path) -> None:
    one, other = Shell(tmp_path), Shell(tmp_path)
    places = {
        Path(shell.run("touch $PYTEST_DEBUG_TEMPROOT/left && echo $PYTEST_DEBUG_TEMPROOT").strip()) for shell in (one, other)
    }
    assert len(places) == 2
    one.close()
    other.close()
    assert not any(place.exists() for place in places)
