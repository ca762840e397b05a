"""Mounts small disks that become full or fail, and sends messages to a broker on them.

The disks are real file systems: a tmpfs, and an ext4 with an injected error like that of a broken device.
"""

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import BrokerError, ClientError, LocalTransactionState, Producer, PullConsumer
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from tests.e2e.clients import running

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


class Disk:
    """A mounted disk."""

    def __init__(self, root: Path, *mount: str) -> None:
        self.root = root
        self._mount = mount
        self._ballast = root / "ballast"

    def mount(self) -> str | None:
        """Mounts the disk. Returns the reason if that fails, otherwise None."""
        return run("mount", *self._mount, str(self.root))

    def unmount(self) -> str | None:
        """Unmounts the disk, and waits until no namespace has it mounted. Returns the reason if that fails, otherwise None.

        A starting container has the machine's mounts for a moment. Until it releases this mount, the file system stays read-only
        after an error, and a new mount would show the same file system.
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
        """Fills the disk completely."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def fill_to(self, ratio: float) -> None:
        """Fills or frees space until this ratio of the disk is in use."""
        disk = os.statvfs(self.root)
        size = self._ballast.stat().st_size if self._ballast.exists() else 0
        used = disk.f_blocks - disk.f_bfree
        with self._ballast.open("ab") as file:
            file.truncate(0)
            os.posix_fallocate(file.fileno(), 0, size + int(ratio * disk.f_blocks - used) * disk.f_frsize)

    def free(self) -> None:
        """Frees the space that `fill` or `fill_to` has used."""
        self._ballast.unlink()

    def fail(self) -> None:
        """Injects an error into the file system. The kernel then makes it read-only, even though files are open for writing."""
        trigger = self._file_system() / "trigger_fs_error"
        if not trigger.exists():
            pytest.skip("this kernel's ext4 cannot be told to fail")
        trigger.write_text("1")

    def _file_system(self) -> Path:
        """Returns the kernel's folder for the file system, which exists while the file system is mounted in any namespace."""
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
    """Runs the command, and returns its error text, or None if it succeeded."""
    if shutil.which(command[0]) is None:
        return f"there is no {command[0]}"
    ended = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return ended.stderr.strip() or f"exit code {ended.returncode}" if ended.returncode else None


class Books:
    """A transaction listener that returns `arg` or UNKNOWN, and at a check-back decides by the message's body."""

    def __init__(self) -> None:
        self.checked = 0
        self.is_sure = True

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return arg if isinstance(arg, LocalTransactionState) else UNKNOWN

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked += 1
        if not self.is_sure:
            return UNKNOWN
        return COMMIT if message.body.startswith(b"commit") else ROLLBACK


class Sender:
    """A sender that records acknowledged messages."""

    def __init__(self, producer: Producer) -> None:
        self.acknowledged: list[bytes] = []
        self._producer = producer

    async def send(self, count: int) -> None:
        """Sends messages. The broker must accept all of them."""
        for number in range(count):
            await self._send_one(b"%d %d " % (len(self.acknowledged), number) + A_BODY)

    async def send_until_refused(self) -> BrokerError:
        """Sends messages until the broker refuses one, and returns the error."""
        for _ in range(3 * DISK_MIB * 1024 * 1024 // len(A_BODY)):
            try:
                await self.send(1)
            except BrokerError as error:
                return error
        raise AssertionError("the broker accepted every message although the disk must be full")

    async def send_until_taken(self, timeout_s: float) -> None:
        """Retries a send until the broker accepts it."""
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
    """Returns the bodies of all messages that consumers would receive. Checks that the queue offsets have no gap."""
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
