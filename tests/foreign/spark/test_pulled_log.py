"""Messages pulled from a broker give the same rows as the broker's commit log."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from demo.system import QUICK_CHECKS
from pipelines.sources.logs.message_logs import COLUMNS, StoreLog
from pipelines.sources.logs.pulled_log import BrokerLog
from pipelines.sources.logs.pulled_log_source import PulledLogSource
from pipelines.sources.logs.queue_ranges import decided_without_record, queue_ranges
from pipelines.sources.reading import read_here
from rocketmq_broker.client import LocalTransactionState, Producer, TransactionProducer
from rocketmq_broker.message import Message
from rocketmq_commitlog.errors import UnreadableStore
from rocketmq_commitlog.source import CommitLogSource
from tests.conftest import BrokerProcess
from tests.e2e.clients import PATIENT, Database, Inbox, consumer, running
from tests.e2e.tool import Tool
from tests.foreign.apache.cluster import apache_rocketmq
from tests.unit.testing.listeners import AsSent
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
TYPES = {"string": StringType(), "int": IntegerType(), "bigint": LongType(), "binary": BinaryType()}
SCHEMA = StructType([StructField(name, TYPES[kind]) for name, kind in {**COLUMNS, "check_times": "int"}.items()])
KINDS = {"half", "discarded", "committed", "plain"}
CHECKED_ONCE = {**QUICK_CHECKS, "transactionCheckMax": "1"}


async def every_way(namesrv_addr: str) -> None:
    """Sends messages with every outcome: decided transactions, a long body, a delayed message, a redelivery, a dead letter."""
    group, database = "credit_service", Database()
    inbox = Inbox(database.consume)
    async with (
        running(TransactionProducer("order_service", AsSent(), namesrv_addr=namesrv_addr, **PATIENT)) as transactions,
        running(Producer("p", namesrv_addr=namesrv_addr, **PATIENT)) as producer,
        running(consumer(namesrv_addr, group, "orders", inbox, max_reconsume_times=0)),
    ):
        for number, decision in enumerate((COMMIT, ROLLBACK, UNKNOWN)):
            message = Message.of("orders", b'{"order_id": "o-%d"}' % number, keys=[f"o-{number}"], tags="created")
            await transactions.send_message_in_transaction(message, decision)
        await producer.send(Message.of("orders", b"long " * 2_000, keys=["long"]))
        await producer.send(Message.of("later", b"delayed", delay_time_level=18))
        tool = Tool("-n", namesrv_addr)
        await tool.wait_for("discarded")
        await until(lambda: len(inbox.messages) >= 2)
        await tool.wait_for("dead-letters", "list", group)


def rows(source: type[CommitLogSource] | type[PulledLogSource], **options: str) -> list[dict[str, object]]:
    found = read_here(source, options, SCHEMA).to_pylist()
    return sorted(found, key=lambda row: int(row["commit_log_offset"]))


def compare(address: str, store: Path, kinds: set[str]) -> None:
    pulled = rows(PulledLogSource, brokerAddr=address, rangeMessages="2")
    assert {str(row["kind"]) for row in pulled} == kinds
    # What a broker stores meanwhile is in the file alone.
    last = pulled[-1]["commit_log_offset"]
    written = [
        row
        for row in rows(CommitLogSource, store=str(store))
        if row["kind"] in kinds and int(row["commit_log_offset"]) <= int(last)
    ]  # type: ignore[call-overload]
    assert pulled == written


@pytest.fixture
def played(start_broker: Callable[..., BrokerProcess]) -> BrokerProcess:
    broker = start_broker(CHECKED_ONCE)
    asyncio.run(every_way(broker.namesrv_addr))
    return broker


def test_our_broker_gives_the_rows_of_its_commit_log(played: BrokerProcess) -> None:
    compare(played.address, played.store, {*KINDS, "op"})
    assert list(decided_without_record(played.address)) == []
    pulled, written = BrokerLog(played.address), StoreLog(played.store)
    assert pulled.is_small()
    assert (pulled.begins_ms("orders"), written.begins_ms("orders")) == (0, 0)
    offsets = pulled.consumer_offsets("credit_service", "orders")
    assert offsets is not None
    assert sum(offsets.values()) <= sum(part.end for part in queue_ranges(played.address, ["orders"]))
    assert pulled.consumer_offsets("nobody", "nothing") == {}
    played.process.stop()
    with pytest.raises(UnreadableStore, match=played.address):
        pulled.check()


@pytest.fixture
def apaches(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    settings = {"TRANSACTION_TIMEOUT_MS": "2000", "CHECK_INTERVAL_MS": "1000", "CHECK_MAX": "1"}
    with apache_rocketmq(tmp_path / "apache", settings=settings) as namesrv_addr:
        asyncio.run(every_way(namesrv_addr))
        yield namesrv_addr, tmp_path / "apache"


@pytest.mark.java
@pytest.mark.slow
def test_apaches_broker_gives_the_rows_of_its_commit_log_save_op_messages(apaches: tuple[str, Path]) -> None:
    """Messages pulled from Apache's broker give the same rows as its commit log, except the rows of op messages.

    Apache's broker hides the topic of op messages. The consumer offset of its system group in the half topic shows
    which half messages are decided.
    """
    namesrv_addr, home = apaches
    (cluster,) = asyncio.run(Tool("-n", namesrv_addr).rows("topics", "--all"))[:1]
    (store,) = home.rglob("commitlog")
    compare(str(cluster["broker"]), store.parent, KINDS)
    deadline = time.monotonic() + 60
    # A half message that was checked is stored once more, so there may be more of them than were sent.
    while not set(decided := decided_without_record(str(cluster["broker"]))) >= {0, 1, 2}:
        assert time.monotonic() < deadline, f"decided: {decided}"
        time.sleep(0.5)
