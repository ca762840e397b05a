"""Tests of group commit: the time of the responses, and the behavior when the disk fails."""

import asyncio
import errno
import os
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rocketmq_broker.message.record import decode_records
from rocketmq_broker.protocol.codes import ResponseCode, SerializeType
from rocketmq_broker.protocol.command import ReplyTo
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.server.durability import flusher, group_commit
from rocketmq_broker.server.durability.group_commit import GroupCommit
from rocketmq_broker.store import Appended, FlushDiskType, MessageStore, StoreConfig, StoreUnwritable
from rocketmq_broker.store.log.segments import Segments
from tests.unit.store.conftest import append, small_config

SYNC, ASYNC = FlushDiskType.SYNC_FLUSH, FlushDiskType.ASYNC_FLUSH


class Client:
    """A fake connection that records the responses."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []

    def send(self, frame: bytes) -> None:
        self.frames.append(frame)

    def send_at_once(self, frames: list[bytes]) -> None:
        self.frames += frames

    def answer(self, index: int) -> tuple[int, int, str | None]:
        command = FrameDecoder().feed(self.frames[index])[0]
        return command.opaque, command.code, command.remark


class Listener:
    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    def confirm(self, position: int) -> None:
        self.heard.append(("confirm", position))

    def take_back(self, position: int) -> None:
        self.heard.append(("take back", position))


class Stage:
    """A store with group commit, and a client and a listener that a test can inspect."""

    def __init__(self, store: MessageStore, group_commit: GroupCommit) -> None:
        self.store = store
        self.group_commit = group_commit
        self.client = Client()
        self.listener = Listener()
        group_commit.listeners.append(self.listener)

    def append(self, body: bytes = b"x", *, opaque: int | None = None) -> Appended:
        appended = append(self.store, body, store_timestamp=1)
        self.group_commit.appended()
        if opaque is not None:
            self.group_commit.after_durable(appended.end_position, self.client, ReplyTo(opaque, SerializeType.JSON))
        return appended

    @property
    def flusher_pid(self) -> int:
        pid = self.group_commit._flusher.pid
        assert pid is not None
        return pid

    async def until(self, is_reached: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not is_reached():  # noqa: ASYNC110
                await asyncio.sleep(0)


def config(root: Path) -> StoreConfig:
    return small_config(root, commit_log_segment_size=4096)


@asynccontextmanager
async def stage(root: Path, flush_disk_type: FlushDiskType = SYNC, **settings: Any) -> AsyncIterator[Stage]:
    store = MessageStore.open(config(root))
    group_commit = GroupCommit(store, flush_disk_type, **settings)
    await group_commit.start()
    try:
        yield Stage(store, group_commit)
    finally:
        await group_commit.stop()
        store.close()


async def test_with_async_flush_many_bytes_do_not_wait_for_the_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "FLUSHED_AT_BYTES", 2000)
    async with stage(tmp_path, ASYNC, async_flush_interval_s=3600.0) as at:
        at.append(b"x" * 1000)
        await at.until(lambda: at.store.written_position > 0)
        assert at.group_commit.flushes == 0
        end = at.append(b"x" * 1000).end_position
        await at.until(lambda: at.store.flushed_position == end)
        assert at.group_commit.flushes == 1


async def test_with_sync_flush_the_answer_follows_the_flush_and_so_does_visibility(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        appended = it.append(opaque=1)
        await it.until(lambda: it.store.written_position > 0)
        assert (it.client.frames, it.store.max_offset(b"orders", 0)) == ([], 0)
        await it.until(lambda: bool(it.client.frames))
        assert it.store.flushed_position == appended.end_position
        assert it.store.max_offset(b"orders", 0) == 1
        assert it.client.answer(0)[:2] == (1, ResponseCode.SUCCESS)
        assert it.listener.heard == [("confirm", appended.end_position)]


@pytest.mark.parametrize("flush_disk_type", [SYNC, ASYNC])
async def test_a_client_is_answered_before_readers_see_and_after_its_transaction_is_confirmed(
    tmp_path: Path, flush_disk_type: FlushDiskType
) -> None:
    async with stage(tmp_path, flush_disk_type) as it:
        seen_at_answer: list[tuple[bool, int]] = []

        class Watching(Client):
            def send_at_once(self, frames: list[bytes]) -> None:
                seen_at_answer.append((bool(it.listener.heard), it.store.max_offset(b"orders", 0)))
                super().send_at_once(frames)

        it.client = Watching()
        it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))
        assert seen_at_answer == [(True, 0)]
        assert it.store.max_offset(b"orders", 0) == 1, "whatever the client asks next comes in a later turn"


async def test_a_durable_message_is_answered_even_if_telling_readers_of_it_fails(tmp_path: Path) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context["exception"]))
    async with stage(tmp_path) as it:
        it.store.arrival_listener = lambda *arrival: 1 / 0
        it.append(opaque=1)
        await it.until(lambda: bool(failures))
        it.store.arrival_listener = None
        it.append(opaque=2)
        await it.until(lambda: len(it.client.frames) == 2)
        assert [it.client.answer(at)[:2] for at in (0, 1)] == [(1, ResponseCode.SUCCESS), (2, ResponseCode.SUCCESS)]
        assert [type(failure) for failure in failures] == [ZeroDivisionError]
        assert it.store.max_offset(b"orders", 0) == 2


async def test_with_async_flush_the_answer_follows_the_write(tmp_path: Path) -> None:
    async with stage(tmp_path, ASYNC, async_flush_interval_s=600) as it:
        it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))
        assert it.store.flushed_position == 0
        assert it.store.max_offset(b"orders", 0) == 1


async def test_all_that_come_together_share_a_flush_and_are_answered_in_order(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        for opaque in range(20):
            it.append(b"x" * 500, opaque=opaque)
        await it.until(lambda: len(it.client.frames) == 20)
        assert it.group_commit.flushes == 1
        assert [it.client.answer(index)[:2] for index in range(20)] == [(index, ResponseCode.SUCCESS) for index in range(20)]
        it.group_commit.put_times.begin_minute()
        assert counted(it.group_commit.put_times.distribution()) == 20


def counted(distribution: str) -> int:
    return sum(int(each.rpartition(":")[2]) for each in distribution.split())


async def test_what_comes_during_a_flush_makes_up_the_next(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        it.append(opaque=0)
        await it.until(lambda: it.group_commit.flushes == 1)
        for opaque in range(1, 5):
            it.append(opaque=opaque)
        await it.until(lambda: len(it.client.frames) == 5)
        assert it.group_commit.flushes == 2


async def test_what_nobody_waits_for_is_flushed_soon_all_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        appended = it.append()
        await it.until(lambda: it.store.flushed_position == appended.end_position)
        assert it.store.max_offset(b"orders", 0) == 1


async def test_what_nobody_waits_for_shares_the_flush_of_what_somebody_does(tmp_path: Path) -> None:
    async with stage(tmp_path, unwaited_delay_s=600) as it:
        it.append()
        await it.until(lambda: it.store.written_position > 0)
        assert it.group_commit.flushes == 0
        it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))
        assert it.group_commit.flushes == 1


async def test_others_inside_the_broker_can_wait_too(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        appended = it.append()
        await asyncio.wait_for(it.group_commit.wait(appended.end_position), 10)
        assert it.store.flushed_position == appended.end_position
        await asyncio.wait_for(it.group_commit.wait(appended.end_position), 10)


async def test_a_write_that_fails_is_answered_as_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as it:
        kept = it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))

        def refuse(file: int, data: bytes, position: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(it.store._files, "write", refuse)
            it.append(opaque=2)
            waiting = it.group_commit.wait(it.append().end_position)
            await it.until(lambda: len(it.client.frames) == 2)
            with pytest.raises(StoreUnwritable):
                await waiting
        opaque, code, remark = it.client.answer(1)
        assert (opaque, code) == (2, ResponseCode.SERVICE_NOT_AVAILABLE)
        assert "No space left on device" in str(remark)
        assert it.listener.heard[-1] == ("take back", kept.end_position)
        again = it.append(opaque=3)
        assert again.queue_offset == 1
        await it.until(lambda: len(it.client.frames) == 3)
        assert it.client.answer(2)[:2] == (3, ResponseCode.SUCCESS)


async def test_a_flush_that_fails_takes_back_what_it_was_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as it:
        it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))
        with monkeypatch.context() as patch:
            patch.setattr(Segments, "paths_between", lambda *_: [tmp_path / "no such file"])
            it.append(b"lost", opaque=2)
            await it.until(lambda: len(it.client.frames) == 2)
        assert it.client.answer(1)[1] == ResponseCode.SERVICE_NOT_AVAILABLE
        assert it.store.written_position == it.store.flushed_position
        it.append(b"kept", opaque=3)
        await it.until(lambda: len(it.client.frames) == 3)
        pulled = it.store.pull(b"orders", 0, 0, 32, 1 << 20)
        assert (len(pulled.records), pulled.max_offset) == (2, 2)
        it.group_commit.put_times.begin_minute()
        assert counted(it.group_commit.put_times.distribution()) == 2, "what was lost has taken no time"


async def test_it_says_why_the_store_is_broken_if_what_was_not_flushed_cannot_be_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(segments: Segments, position: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    told: list[str] = []
    async with stage(tmp_path, on_broken=told.append) as it:
        with monkeypatch.context() as patch:
            patch.setattr(Segments, "paths_between", lambda *_: [tmp_path / "no such file"])
            patch.setattr(Segments, "truncate", fail)
            it.append(b"lost", opaque=1)
            await it.until(lambda: bool(it.client.frames))
        assert it.client.answer(0)[1] == ResponseCode.SERVICE_NOT_AVAILABLE
        assert told == ["the disk failed, and the unflushed data cannot be removed: EIO input/output error"]


async def test_a_flush_process_that_dies_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        for opaque in range(5):
            os.kill(it.flusher_pid, signal.SIGKILL)
            it.append(opaque=opaque)
            await it.until(lambda: len(it.client.frames) == opaque + 1)  # noqa: B023
        assert [it.client.answer(index)[1] for index in range(5)] == [ResponseCode.SUCCESS] * 5


async def test_a_disk_that_hangs_is_answered_as_a_flush_time_out_when_the_time_is_over(tmp_path: Path) -> None:
    async with stage(tmp_path, flush_timeout_s=0.0) as it:
        os.kill(it.flusher_pid, signal.SIGSTOP)
        it.append(opaque=1)
        await it.until(lambda: bool(it.client.frames))
        os.kill(it.flusher_pid, signal.SIGCONT)
        assert it.client.answer(0)[1] == ResponseCode.FLUSH_DISK_TIMEOUT
        await it.until(lambda: it.store.max_offset(b"orders", 0) == 1)


async def test_what_waits_behind_a_flush_that_hangs_is_answered_in_time_too(tmp_path: Path) -> None:
    async with stage(tmp_path, flush_timeout_s=0.05) as it:
        os.kill(it.flusher_pid, signal.SIGSTOP)
        it.append(opaque=1)
        await it.until(lambda: it.group_commit.flushes == 1)
        it.append(opaque=2)
        waiting = it.group_commit.wait(it.append().end_position)
        await it.until(lambda: len(it.client.frames) == 2)
        with pytest.raises(StoreUnwritable, match=r"timed out after 0\.05 s"):
            await asyncio.wait_for(waiting, 10)
        assert [it.client.answer(index)[1] for index in range(2)] == [ResponseCode.FLUSH_DISK_TIMEOUT] * 2
        assert it.group_commit.flushes == 1
        os.kill(it.flusher_pid, signal.SIGCONT)
        await it.until(lambda: it.store.max_offset(b"orders", 0) == 3)

        async def sent() -> int:
            answers = len(it.client.frames)
            it.append(opaque=3)
            await it.until(lambda: len(it.client.frames) > answers)
            return it.client.answer(-1)[1]

        codes = [await sent()]
        while codes[-1] != ResponseCode.SUCCESS and len(codes) < 100:  # a flush of a busy disk may take longer than 0.05 s, too
            codes.append(await sent())
        assert codes[-1] == ResponseCode.SUCCESS


@pytest.mark.parametrize("bound", ["MAX_UNPUBLISHED", "MAX_UNFLUSHED_BYTES"])
async def test_behind_a_flush_that_hangs_only_so_much_waits_and_then_sends_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(group_commit, bound, 40 if bound == "MAX_UNPUBLISHED" else 4000)
    async with stage(tmp_path, flush_timeout_s=600) as it:
        os.kill(it.flusher_pid, signal.SIGSTOP)
        with pytest.raises(StoreUnwritable, match=r"too many unflushed messages: \d+, \d+ bytes; the disk is slow or hangs"):  # noqa: PT012
            for opaque in range(100):
                it.append(opaque=opaque)
                await asyncio.sleep(0)
        taken = it.store.unpublished
        assert 30 < taken < 50
        os.kill(it.flusher_pid, signal.SIGCONT)
        await it.until(lambda: len(it.client.frames) == taken)
        it.append(opaque=1000)
        await it.until(lambda: len(it.client.frames) == taken + 1)
        assert it.store.max_offset(b"orders", 0) == taken + 1


async def test_what_a_disk_that_hung_kept_back_is_shown_a_little_at_a_time_and_in_order(tmp_path: Path) -> None:
    """Responses are confirmed in order, in steps of at most 200 requests or 5 ms.

    The listener in this test needs more than 5 ms for each request.
    """

    class SlowListener(Listener):
        def confirm(self, position: int) -> None:
            time.sleep(0.006)

    async with stage(tmp_path) as it:
        it.group_commit.listeners.append(SlowListener())
        os.kill(it.flusher_pid, signal.SIGSTOP)
        for opaque in range(1000):
            it.append(opaque=opaque)
            await asyncio.sleep(0)
        os.kill(it.flusher_pid, signal.SIGCONT)
        await it.until(lambda: len(it.client.frames) > 1)
        assert len(it.client.frames) < 500
        await it.until(lambda: len(it.client.frames) == 1000)
        assert [it.client.answer(index)[:2] for index in range(1000)] == [(index, ResponseCode.SUCCESS) for index in range(1000)]


async def test_without_a_process_to_flush_sends_are_refused_until_there_is_one_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*command: object, **settings: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(flusher, "_AGAIN_AFTER_S", 0.01)
    async with stage(tmp_path) as it:
        for outage in range(2):
            with monkeypatch.context() as patch:
                patch.setattr("subprocess.Popen", refuse)
                os.kill(it.flusher_pid, signal.SIGKILL)
                it.append(opaque=outage)
                await it.until(lambda: it.store.writability.refusal is not None)
                with pytest.raises(StoreUnwritable, match="no flush process can be started: Too many open files"):
                    it.append()
            await it.until(lambda number=outage: len(it.client.frames) > number)
            assert it.client.answer(outage)[:2] == (outage, ResponseCode.SUCCESS)
        it.append(opaque=2)
        await it.until(lambda: len(it.client.frames) == 3)


async def test_a_store_that_was_given_up_acknowledges_nothing_more(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        os.kill(it.flusher_pid, signal.SIGSTOP)
        it.append(opaque=1)
        await it.until(lambda: it.group_commit.flushes == 1)
        it.append(opaque=2)
        it.group_commit.give_up("another broker may use the store")
        os.kill(it.flusher_pid, signal.SIGCONT)
        assert [it.client.answer(index)[1:] for index in range(2)] == [
            (ResponseCode.SERVICE_NOT_AVAILABLE, "another broker may use the store")
        ] * 2
        await asyncio.sleep(0.1)
        assert it.store.max_offset(b"orders", 0) == 0
        assert len(it.client.frames) == 2


async def test_stopping_flushes_and_answers_what_still_waits(tmp_path: Path) -> None:
    async with stage(tmp_path) as it:
        appended = it.append(opaque=1)
    assert it.client.answer(0)[:2] == (1, ResponseCode.SUCCESS)
    assert it.store.flushed_position == appended.end_position


async def test_checkpoints_are_written_in_the_background(tmp_path: Path) -> None:
    async with stage(tmp_path, checkpoint_interval_s=0.01) as it:
        it.append(opaque=1)
        await it.until(
            lambda: (tmp_path / "checkpoint").exists() and (tmp_path / "checkpoint").read_bytes()[:8] == (1).to_bytes(8, "big")
        )


async def test_the_next_segment_is_made_before_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(tmp_path) as it:
        log = tmp_path / "commitlog"
        await it.until(lambda: it.store.next_segment.prepare_from > 0)
        it.append(b"x" * 2000, opaque=1)
        await it.until(lambda: bool(it.client.frames))
        assert os.listdir(log) == [f"{0:020d}"]
        it.append(b"x" * 1200, opaque=2)
        await it.until(lambda: it.store.next_segment.prepare_from > 4096)
        create = Segments.create

        def create_no_segment_of_the_log(segments: Segments, start: int, *, is_durable: bool = True) -> None:
            assert not is_durable, "the loop makes none itself"
            create(segments, start, is_durable=is_durable)

        monkeypatch.setattr(Segments, "create", create_no_segment_of_the_log)
        it.append(b"x" * 2000, opaque=3)
        await it.until(lambda: len(it.client.frames) == 3)
        assert [it.client.answer(index)[1] for index in range(3)] == [ResponseCode.SUCCESS] * 3


@pytest.mark.parametrize("is_killed", [False, True])
async def test_a_segment_that_was_made_and_not_needed_does_not_disturb_the_next_start(tmp_path: Path, is_killed: bool) -> None:
    async with stage(tmp_path) as it:
        it.append(b"x" * 3200, opaque=1)
        await it.until(lambda: it.store.next_segment.prepare_from > 4096 and bool(it.client.frames))
        if is_killed:
            shutil.copytree(tmp_path, tmp_path / "killed")
    async with stage(tmp_path / "killed" if is_killed else tmp_path) as again:
        assert again.store.recovery.was_stopped_cleanly is not is_killed
        assert not [action for action in again.store.recovery.actions if "torn" in action or "damaged" in action]
        assert again.append(b"y" * 3000, opaque=1).queue_offset == 1
        await again.until(lambda: bool(again.client.frames))
        assert len(again.store.pull(b"orders", 0, 0, 32, 1 << 20).records) == 2


class Disk:
    """A disk that fails flushes and then loses the data to flush. Later flushes succeed nevertheless."""

    def __init__(self) -> None:
        self.on_answer: Callable[[int], None] = lambda _: None
        self.is_refusing = False
        self.requests = 0
        self._flushed: dict[Path, bytes] = {}

    def new_flushing(self, on_answer: Callable[[int], None], *_: object) -> "Disk":
        self.on_answer = on_answer
        return self

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def request(self, paths: Sequence[Path]) -> None:
        self.requests += 1
        for path in paths:
            if self.is_refusing:
                path.write_bytes(self._flushed.get(path, bytes(path.stat().st_size)))
            else:
                self._flushed[path] = path.read_bytes()
        asyncio.get_running_loop().call_soon(self.on_answer, errno.EIO if self.is_refusing else 0)


async def test_with_async_flush_a_refused_flush_stops_the_broker_from_acknowledging_and_loses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = Disk()
    async with stage(tmp_path, ASYNC, async_flush_interval_s=0.01, new_flushing=disk.new_flushing) as it:
        it.append(b"on disk", opaque=1)
        await it.until(lambda: it.store.flushed_position > 0)
        disk.is_refusing = True
        it.append(b"acknowledged" * 200, opaque=2)
        it.append(b"in the next segment" * 100, opaque=3)
        await it.until(lambda: it.store.writability.is_failing)
        flushed = it.store.flushed_position
        assert [it.client.answer(number)[1] for number in range(3)] == [ResponseCode.SUCCESS] * 3
        with pytest.raises(StoreUnwritable, match="messages are refused until a flush succeeds"):
            it.append(b"too much", opaque=4)
        seen = disk.requests
        await it.until(lambda: disk.requests > seen + 2)
        assert it.store.flushed_position == flushed, "no flush is believed that the disk refused"
        assert it.store.writability.flush_failures >= 3
        assert caplog.text.count("messages are refused until a flush succeeds") == 1
        disk.is_refusing = False
        await it.until(lambda: it.store.flushed_position == it.store.written_position)
        it.append(b"stored again", opaque=5)
        await it.until(lambda: len(it.client.frames) == 4)
        assert it.client.answer(3)[:2] == (5, ResponseCode.SUCCESS)
        assert "messages are accepted again" in caplog.text
    kept = MessageStore.open(config(tmp_path))
    records = decode_records(b"".join(kept.pull(b"orders", 0, 0, 32, 1 << 20).records))
    kept.close()
    assert [record.body[:12] for record in records] == [b"on disk", b"acknowledged", b"in the next ", b"stored again"]


async def test_what_comes_between_a_refused_flush_and_its_answer_is_not_acknowledged(tmp_path: Path) -> None:
    async with stage(tmp_path, ASYNC, async_flush_interval_s=600, new_flushing=Disk().new_flushing) as it:
        it.append(b"acknowledged", opaque=1)
        await it.until(lambda: bool(it.client.frames))
        it.append(b"on its way", opaque=2)
        it.store.note_flush_failed("the disk refuses")
        await it.until(lambda: len(it.client.frames) == 2)
        assert it.client.answer(1)[:2] == (2, ResponseCode.SERVICE_NOT_AVAILABLE)
        assert it.store.max_offset(b"orders", 0) == 1
