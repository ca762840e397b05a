"""Tests of a full or read-only disk: sends are refused, reads continue, and acknowledged messages remain."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rocketmq_broker.client import BrokerError, Producer, TransactionProducer
from rocketmq_broker.message import Message
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Inbox, consumer, running
from tests.e2e.disks import A_BODY, COMMIT, DISK_MIB, REFUSED, TOPIC, Books, Disk, Sender, mounted, run, store_on, stored
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Disk]:
    """Yields a small disk that can be filled."""
    yield from mounted(tmp_path, "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs")


async def test_a_full_disk_refuses_sends_and_loses_nothing_and_goes_on_by_itself(
    start_broker: Callable[..., BrokerProcess], full_disk: Disk
) -> None:
    broker, books, inbox = start_broker(store_on(full_disk)), Books(), Inbox()
    namesrv_addr = broker.namesrv_addr
    async with (
        running(Producer("senders", namesrv_addr=namesrv_addr, retry_times_when_send_failed=0, **PATIENT)) as producer,
        running(TransactionProducer("transactions", books, namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
        running(consumer(namesrv_addr, "readers", TOPIC, inbox)),
    ):
        sender = Sender(producer)
        await sender.send(40)
        books.is_sure = False
        await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit when asked"))
        full_disk.fill()

        refusal = await sender.send_until_refused()
        assert refusal.code in REFUSED
        assert "space" in str(refusal) or "full" in str(refusal)
        # Before, a small COMMIT could still find room.
        await until(lambda: "messages are refused: the disk is" in broker.process.output())
        books.is_sure = True
        with pytest.raises(BrokerError) as refused:
            await transactions.send_message_in_transaction(Message.of(TOPIC, b"commit " + A_BODY), COMMIT)
        assert refused.value.code in REFUSED
        assert set(sender.acknowledged) <= set(await stored(namesrv_addr))
        asked = books.checked
        await until(lambda: books.checked > asked + 1)  # the decision of the pending transaction meets the full disk as well
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


def test_a_broker_on_a_read_only_disk_says_so_and_ends(start_broker: Callable[..., BrokerProcess], full_disk: Disk) -> None:
    broker = start_broker(store_on(full_disk))
    broker.process.stop()
    assert run("mount", "-o", "remount,ro", str(full_disk.root)) is None

    broker.process.spawn()

    assert broker.process.wait(60) == 1
    assert broker.process.output() == (
        f"The broker cannot start: cannot open the store {full_disk.root}/store: "
        f"[Errno 30] Read-only file system: '{full_disk.root}/store/lock'\n"
    )
