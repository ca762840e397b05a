"""No acknowledged message is lost on a disk that fails.

Other programs fill the disk, the disk stays full after a kill, or it turns read-only.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import Producer, TransactionProducer
from rocketmq_broker.message import Message
from rocketmq_broker.protocol.codes import ResponseCode
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, running
from tests.e2e.disks import COMMIT, DISK_MIB, REFUSED, TOPIC, Books, Disk, Sender, mounted, run, store_on, stored

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts a small disk that can be filled."""
    yield from mounted(tmp_path, "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs")


@pytest.fixture
def failing_disk(tmp_path: Path) -> Iterator[Disk]:
    """Mounts an ext4 file system that turns read-only on an error."""
    image = tmp_path / "disk.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    made = run("mkfs.ext4", "-q", str(image))
    if made is not None:
        pytest.skip(f"no ext4 can be made: {made}")
    yield from mounted(tmp_path, "-o", "loop,errors=remount-ro", str(image))


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
    assert broker.process.output().count("messages are accepted again") == 1


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
