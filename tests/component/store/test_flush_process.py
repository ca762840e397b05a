import errno
import io
import os
import signal
import struct
from pathlib import Path

import pytest

from rocketmq_broker.platform.flush_helper import serve
from rocketmq_broker.store import flush_process
from rocketmq_broker.store.flush_process import FlushProcess


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


@pytest.mark.parametrize("has_proc", [True, False])
def test_a_file_created_again_under_the_same_name_is_the_one_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_proc: bool
) -> None:
    if not has_proc:
        monkeypatch.setattr(os, "readlink", refuse)
    path = tmp_path / "segment"
    path.write_bytes(b"old")
    synced: list[bytes] = []

    def sync(file: int) -> None:
        synced.append(os.pread(file, 10, 0))
        if len(synced) == 2:
            path.unlink()
            path.write_bytes(b"new")

    monkeypatch.setattr(os, "fdatasync", sync)
    assert answers_to(*[os.fsencode(path)] * 4) == [0] * 4
    assert synced == [b"old", b"old", b"new", b"new"]


def refuse(path: str) -> str:
    raise FileNotFoundError(errno.ENOENT, "no /proc here", path)


def test_a_file_whose_folder_was_moved_away_is_still_the_one_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "commitlog"
    folder.mkdir()
    (folder / "segment").write_bytes(b"ours")
    synced: list[bytes] = []

    def sync(file: int) -> None:
        synced.append(os.pread(file, 10, 0))
        if len(synced) == 1:
            folder.rename(tmp_path / "away")
            folder.mkdir()
            (folder / "segment").write_bytes(b"another's")

    monkeypatch.setattr(os, "fdatasync", sync)
    assert answers_to(*[os.fsencode(folder / "segment")] * 2) == [0] * 2
    assert synced == [b"ours", b"ours"]


def test_no_more_than_a_few_files_stay_open(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(20)]
    for path in paths:
        path.touch()
    process = FlushProcess()
    try:
        process.request(paths)
        assert process.answer() == 0
        held = [os.readlink(link) for link in Path(f"/proc/{process._process.pid}/fd").iterdir()]
        assert sum(str(tmp_path) in target for target in held) <= 4
    finally:
        process.close()


def test_ctrl_c_and_a_polite_end_leave_the_helper_to_the_broker_that_needs_its_last_flush(tmp_path: Path) -> None:
    process = FlushProcess()
    try:
        process.request([tmp_path])
        assert process.answer() == 0
        for number in (signal.SIGINT, signal.SIGTERM):
            process._process.send_signal(number)
        process.request([tmp_path])
        assert process.answer() == 0
    finally:
        process.close()
    assert process._process.returncode == 0


def test_a_helper_that_hangs_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flush_process, "_EXIT_TIMEOUT_S", 0.1)
    process = FlushProcess()
    process._process.send_signal(signal.SIGSTOP)
    process.close()
    assert process._process.returncode == -signal.SIGKILL


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
