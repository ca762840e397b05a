"""Tests that a demo prints one error line and exits with the right code if its folder cannot be created."""

import os
import signal
from pathlib import Path

import pytest

from demo.__main__ import COULD_NOT_TELL, main


def test_a_folder_that_cannot_be_made_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "umask", lambda _: 0)
    with pytest.raises(SystemExit) as ended:
        main(keep=Path("/"))
    assert ended.value.code == COULD_NOT_TELL
    printed = capsys.readouterr()
    assert printed.out == "The demo cannot go on: cannot create the folder / of --keep: File exists\n"
    assert printed.err == ""
