"""Tests of the thread that syncs files on systems where a flush process is not available."""

import asyncio
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rocketmq_broker.platform.processes import HAS_FLUSH_PROCESS
from rocketmq_broker.server.durability import flush_thread
from rocketmq_broker.server.durability.flush_thread import USUAL_FLUSHING, FlushThread
from rocketmq_broker.server.durability.flusher import Flusher


class Flushes:
    """A flush thread and its results."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[int] = asyncio.Queue()
        self.thread = FlushThread(self.answers.put_nowait, pytest.fail, pytest.fail)
        self.thread.start()

    async def answer_to(self, *paths: Path) -> int:
        self.thread.request(paths)
        async with asyncio.timeout(10):
            return await self.answers.get()


@pytest.fixture
async def flushes() -> AsyncIterator[Flushes]:
    it = Flushes()
    yield it
    it.thread.stop()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Returns the list of synced file descriptors. The files are really synced."""
    files: list[int] = []
    sync = flush_thread.sync_data
    monkeypatch.setattr(flush_thread, "sync_data", lambda file: (files.append(file), sync(file)))
    return files


async def test_each_request_gets_one_answer_when_its_files_are_on_disk(
    flushes: Flushes, tmp_path: Path, synced: list[int]
) -> None:
    paths = [tmp_path / "0", tmp_path / "1"]
    for path in paths:
        path.write_bytes(b"x")
    assert [await flushes.answer_to(*paths), await flushes.answer_to(paths[0])] == [0, 0]
    assert len(synced) == 3
    assert flushes.answers.empty()


async def test_a_file_that_cannot_be_synced_answers_its_errno_and_the_others_are_synced(
    flushes: Flushes, tmp_path: Path, synced: list[int]
) -> None:
    (tmp_path / "there").touch()
    assert await flushes.answer_to(tmp_path / "missing", tmp_path / "there") == errno.ENOENT
    assert len(synced) == 1


async def test_nothing_is_answered_after_the_stop(flushes: Flushes, tmp_path: Path) -> None:
    flushes.thread.request([tmp_path / "missing"])
    running = flushes.thread._running
    assert running is not None
    flushes.thread.stop()
    await asyncio.wait([running])
    assert flushes.answers.empty()


def test_a_process_is_preferred_where_there_can_be_one() -> None:
    assert USUAL_FLUSHING is (Flusher if HAS_FLUSH_PROCESS else FlushThread)
