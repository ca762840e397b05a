"""Small disks that fill up or fail, and what clients send to a broker on them.

The disks are real ones, mounted for a test: a tmpfs, and an ext4 that is told to fail as one on a broken device would.
"""

from __future__ import annotations

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
        raise AssertionError("the broker accepted every message although the disk must be full")

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
