"""A disk that is full, or that the kernel made read-only: sends are refused, reads go on, and what was acknowledged stays.

The disks are real ones, mounted for the test: a tmpfs, and an ext4 that is told to fail as one on a broken device would.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import BrokerError, ClientError, LocalTransactionState, Producer, PullConsumer, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState

TOPIC = "orders"
DISK_MIB = 24
SETTINGS = {
    "mapedFileSizeCommitLog": str(64 << 20),
    "mapedFileSizeConsumeQueue": str(20 * 1000),
    "maxHashSlotNum": "1000",
    "maxIndexNum": "10000",
    "cleanResourceInterval": "1000",
}
REFUSED = {ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_ERROR}
A_BODY = b"x" * 10_000


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk that can be filled."""
    yield from mounted(tmp_path, "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs")


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[Disk]:
    """An ext4 that turns read-only when it meets an error."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    made = run("mkfs.ext4", "-q", str(image))
    if made is not None:
        pytest.skip(f"no ext4 can be made: {made}")
    yield from mounted(tmp_path, "-o", "loop,errors=remount-ro", str(image))


class Disk:
    """A mounted disk."""

    def __init__(self, root: Path, *mount: str) -> None:
        self.root = root
        self._mount = mount
        self._ballast = root / "ballast"

    def mount(self) -> str | None:
        """Why it cannot be mounted, or None."""
        return run("mount", *self._mount, str(self.root))

    def unmount(self) -> str | None:
        """Why it cannot be unmounted, or None: then it is gone from every namespace.

        A container that starts has the machine's mounts for a moment. While it has this one, the file system stays as it is,
        read-only after an error, and a new mount would only show it again.
        """
        file_system = self._file_system()
        complaint = run("umount", str(self.root))
        ends_s = time.monotonic() + 60
        while complaint is None and file_system.exists():
            if time.monotonic() > ends_s:
                return f"{file_system.name} is mounted in another namespace"
            time.sleep(0.05)
        return complaint

    def fill(self) -> None:
        """Leaves no byte free."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def fill_to(self, ratio: float) -> None:
        """Fills or frees until so much of it is in use."""
        disk = os.statvfs(self.root)
        size = self._ballast.stat().st_size if self._ballast.exists() else 0
        used = disk.f_blocks - disk.f_bfree
        with self._ballast.open("ab") as file:
            file.truncate(0)
            os.posix_fallocate(file.fileno(), 0, size + int(ratio * disk.f_blocks - used) * disk.f_frsize)

    def free(self) -> None:
        """Gives the space back."""
        self._ballast.unlink()

    def fail(self) -> None:
        """The file system meets an error, and the kernel makes it read-only though files are open for writing."""
        trigger = self._file_system() / "trigger_fs_error"
        if not trigger.exists():
            pytest.skip("this kernel's ext4 cannot be told to fail")
        trigger.write_text("1")

    def _file_system(self) -> Path:
        """What the kernel tells of it, as long as it is mounted anywhere."""
        (device,) = (
            line.split()[0] for line in Path("/proc/mounts").read_text().splitlines() if line.split()[1] == str(self.root)
        )
        return Path("/sys/fs/ext4") / Path(device).name


def mounted(tmp_path: Path, *mount: str) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    root = tmp_path / "disk"
    root.mkdir()
    disk = Disk(root, *mount)
    complaint = disk.mount()
    if complaint is not None:
        pytest.skip(f"no disk can be mounted: {complaint}")
    yield disk
    run("umount", "--lazy", str(root))


def run(*command: str) -> str | None:
    """What the command complained of, or None."""
    if shutil.which(command[0]) is None:
        return f"there is no {command[0]}"
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return ended.stderr.strip() or f"exit code {ended.returncode}" if ended.returncode else None


class Books:
    """Knows the outcome of each transaction only when it is asked."""

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return arg if isinstance(arg, LocalTransactionState) else UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return COMMIT if message.body.startswith(b"commit") else ROLLBACK


class Sender:
    """Sends, and keeps what was acknowledged."""

    def __init__(self, producer: Producer) -> None:
        self.acknowledged: list[bytes] = []
        self._producer = producer

    async def send(self, count: int) -> None:
        """All are taken."""
        for number in range(count):
            await self._send_one(b"%d %d " % (len(self.acknowledged), number) + A_BODY)

    async def send_until_refused(self) -> BrokerError:
        """What the broker says when it takes no more."""
        for _ in range(3 * DISK_MIB * 1024 * 1024 // len(A_BODY)):
            try:
                await self.send(1)
            except BrokerError as error:
                return error
        raise AssertionError("everything was taken")

    async def send_until_taken(self, timeout_s: float) -> None:
        """Tries until it works."""
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return await self.send(1)
                except ClientError as error:
                    if isinstance(error, BrokerError) and error.code not in REFUSED:
                        raise
                    await asyncio.sleep(0.1)

    async def _send_one(self, body: bytes) -> None:
        queue = (await self._producer.queues(TOPIC))[len(self.acknowledged) % 2]
        await self._producer.send(Message.of(TOPIC, body, keys=["k"]), queue)
        self.acknowledged.append(body)


async def stored(namesrv_addr: str) -> list[bytes]:
    """All bodies that a consumer would get, queue offsets without a gap."""
    bodies = []
    pull = PullConsumer("auditors", namesrv_addr=namesrv_addr)
    async with running(pull):
        for queue in await pull.queues(TOPIC):
            offset = 0
            while offset < await pull.max_offset(queue):
                messages = (await pull.pull(queue, offset)).messages
                assert [message.queue_offset for message in messages] == list(range(offset, offset + len(messages)))
                assert messages
                bodies += [message.body for message in messages]
                offset += len(messages)
    return bodies


def store_on(disk: Disk, **settings: str) -> dict[str, str]:
    return {**SETTINGS, "storePathRootDir": str(disk.root / "store"), **settings}


@pytest.mark.parametrize("flush", ["SYNC_FLUSH", "ASYNC_FLUSH"])
async def test_a_full_disk_refuses_sends_and_loses_nothing_and_goes_on_by_itself(
    start_broker: Callable[..., BrokerProcess], full_disk: Disk, flush: str
) -> None:
    broker, inbox = start_broker(store_on(full_disk, flushDiskType=flush)), Inbox()
    namesrv_addr = broker.namesrv_addr
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, retry_times_when_send_failed=0, **PATIENT)) as producer,
        running(TransactionProducer("transactions", Books(), namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
        running(consumer(namesrv_addr, "readers", TOPIC, inbox)),
    ):
        sender = Sender(producer)
        await sender.send(40)
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit when asked"))
        full_disk.fill()

        refusal = await sender.send_until_refused()
        assert refusal.code in REFUSED
        assert "space" in str(refusal) or "full" in str(refusal)
        with pytest.raises(BrokerError) as refused:
            await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit " + A_BODY), COMMIT)
        assert refused.value.code in REFUSED
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))
        await asyncio.sleep(3)  # the tables, the checkpoint and the pending transaction meet the full disk as well
        assert broker.process.is_running
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))

        full_disk.free()
        await sender.send_until_taken(timeout_s=60)
        await sender.send(20)
        expected = sorted([*sender.acknowledged, b"commit when asked"])
        await until(lambda: len(set(inbox.bodies)) == len(expected))
    assert sorted(await stored(namesrv_addr)) == expected
    assert "Traceback" not in broker.process.output()
    broker.process.stop(timeout_s=60)
    assert broker.process.exit_code == 0
    broker.process.start()
    assert "recovery" not in broker.process.output()
    assert sorted(await stored(namesrv_addr)) == expected


async def test_a_disk_that_others_fill_costs_nothing_acknowledged_and_transactions_still_end(
    start_broker: Callable[..., BrokerProcess], full_disk: Disk
) -> None:
    broker = start_broker(store_on(full_disk, mapedFileSizeCommitLog=str(64 << 10)))
    namesrv_addr = broker.namesrv_addr
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, retry_times_when_send_failed=0, **PATIENT)) as producer,
        running(TransactionProducer("transactions", Books(), namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
    ):
        sender = Sender(producer)
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit when asked"))
        await sender.send(900)  # several segments: bodies are compressed
        full_disk.fill_to(0.87)
        await asyncio.sleep(2.5)  # the broker looks at the disk every second
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))
        await sender.send(1)

        full_disk.fill_to(0.92)
        refusal = await sender.send_until_refused()
        assert refusal.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "full; new messages are refused until there is space" in str(refusal)
        async with asyncio.timeout(60):
            while b"commit when asked" not in await stored(namesrv_addr):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.2)

        full_disk.free()
        await sender.send_until_taken(timeout_s=60)
        assert sorted(await stored(namesrv_addr)) == sorted([*sender.acknowledged, b"commit when asked"])
    assert broker.process.output().count("messages are refused: the disk is") == 1
    assert broker.process.output().count("messages are stored again") == 1


async def test_a_broker_killed_on_a_full_disk_starts_on_it_and_goes_on_when_there_is_space(
    start_broker: Callable[..., BrokerProcess], full_disk: Disk
) -> None:
    broker = start_broker(store_on(full_disk))
    async with running(
        Producer("senders", namesrv_addr=broker.namesrv_addr, retry_times_when_send_failed=0, **PATIENT)
    ) as producer:
        sender = Sender(producer)
        await sender.send(40)
        full_disk.fill()
        await sender.send_until_refused()
        broker.process.kill()

        broker.process.start()
        assert set(sender.acknowledged) <= set(await stored(broker.namesrv_addr))
        assert (await sender.send_until_refused()).code in REFUSED

        full_disk.free()
        await sender.send_until_taken(timeout_s=60)
        assert sorted(await stored(broker.namesrv_addr)) == sorted(sender.acknowledged)


async def test_a_disk_that_turns_read_only_refuses_sends_and_is_read_on(
    start_broker: Callable[..., BrokerProcess], failing_disk: Disk
) -> None:
    broker = start_broker(store_on(failing_disk))
    namesrv_addr = broker.namesrv_addr
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, retry_times_when_send_failed=0, **PATIENT)) as producer,
        running(TransactionProducer("transactions", Books(), namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
    ):
        sender = Sender(producer)
        await sender.send(40)
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"committed"), COMMIT)
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit when asked"))
        failing_disk.fail()

        refusal = await sender.send_until_refused()
        assert refusal.code in REFUSED
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))
        await asyncio.sleep(3)
        assert broker.process.is_running
        assert (await sender.send_until_refused()).code in REFUSED
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))
        assert "Traceback" not in broker.process.output()
        broker.process.stop(timeout_s=60)
        assert broker.process.exit_code == 0

        assert failing_disk.unmount() is None
        assert failing_disk.mount() is None
        broker.process.start()
        await sender.send_until_taken(timeout_s=60)
        expected = sorted([*sender.acknowledged, b"committed", b"commit when asked"])
        async with asyncio.timeout(60):
            while sorted(await stored(namesrv_addr)) != expected:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.2)
        await asyncio.sleep(3)
    assert sorted(await stored(namesrv_addr)) == expected
    broker.process.stop()


def test_a_broker_on_a_read_only_disk_says_so_and_ends(start_broker: Callable[..., BrokerProcess], full_disk: Disk) -> None:
    broker = start_broker(store_on(full_disk))
    broker.process.stop()
    assert run("mount", "-o", "remount,ro", str(full_disk.root)) is None

    broker.process.spawn()

    assert broker.process.wait(60) == 1
    assert broker.process.output() == (
        f"The broker cannot start: the store {full_disk.root}/store cannot be opened: "
        f"[Errno 30] Read-only file system: '{full_disk.root}/store/lock'\n"
    )
