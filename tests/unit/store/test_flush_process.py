from __future__ import annotations

import errno
import io
import os
import signal
import struct
from pathlib import Path

import pytest

from broker.store.flush_process import FlushProcess, serve


def answers_to(*requests: bytes) -> list[int]:
    answers = io.BytesIO()
    serve(io.BytesIO(b"".join(struct.pack(">i", len(request)) + request for request in requests)), answers)
    return [answer for (answer,) in struct.iter_unpack(">i", answers.getvalue())]


def test_each_request_gets_one_answer(tmp_path: Path) -> None:
    paths = [os.fsencode(tmp_path / str(number)) for number in range(10)]
    for path in paths:
        Path(os.fsdecode(path)).write_bytes(b"x")
    assert answers_to(*paths, b"\0".join(paths), b"") == [0] * 12


def test_a_file_that_cannot_be_synced_answers_its_errno(tmp_path: Path) -> None:
    assert answers_to(os.fsencode(tmp_path / "missing")) == [errno.ENOENT]


def test_a_file_made_anew_under_the_same_name_is_the_one_synced(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(b"old")
    process = FlushProcess()
    try:
        for _ in range(2):
            process.request([path])
            assert process.answer() == 0
            path.unlink()
            path.write_bytes(b"new")
    finally:
        process.close()


def test_a_helper_that_was_killed_is_noticed(tmp_path: Path) -> None:
    process = FlushProcess()
    os.kill(process._process.pid, signal.SIGKILL)
    with pytest.raises(OSError):  # noqa: PT011
        process.request([tmp_path]), process.answer()
    process.close()


def test_the_helper_ends_with_its_pipe() -> None:
    process = FlushProcess()
    process.close()
    assert process._process.returncode == 0
