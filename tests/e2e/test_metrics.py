"""The metrics port of a running broker."""

import urllib.request
from collections.abc import Callable

import pytest
from prometheus_client.parser import text_string_to_metric_families

from demo.ports import free_ports
from rocketmq_broker.client import LocalTransactionState, TransactionProducer
from rocketmq_broker.message import Message, MessageExt
from tests.conftest import BrokerProcess
from tests.e2e.clients import Inbox, consumer, running
from tests.waiting import until

pytestmark = pytest.mark.e2e
COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


class AsTold:
    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return arg  # type: ignore[return-value]

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return UNKNOWN


def scraped(port: int) -> dict[tuple[str, str | None], float]:
    """The figures by name and topic; those with other labels as well only if they have no topic."""
    families = text_string_to_metric_families(page_at(port))
    return {(sample.name, sample.labels.get("topic")): sample.value for family in families for sample in family.samples}


def page_at(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        return str(page.read().decode())


async def test_a_scrape_tells_what_became_of_transactions(start_broker: Callable[..., BrokerProcess]) -> None:
    (port,) = free_ports(1)
    broker = start_broker(
        {
            "metricsExporterType": "PROM",
            "metricsPromExporterPort": str(port),
            "metricsLabel": "zone:a",
            "transactionTimeOut": "60000",
        }
    )
    inbox = Inbox()
    async with (
        running(TransactionProducer("order_service", AsTold(), namesrv_addr=broker.namesrv_addr)) as producer,
        running(consumer(broker.namesrv_addr, "credits", "orders", inbox)),
    ):
        for number, state in enumerate((COMMIT, COMMIT, COMMIT, ROLLBACK, ROLLBACK, UNKNOWN)):
            await producer.send_message_in_transaction(Message.of("orders", b"%d" % number), state)
        await until(lambda: len(inbox.bodies) == 3)
        await until(lambda: scraped(port)["rocketmq_rollback_messages_total", "orders"] == 2)
        figures = scraped(port)
    assert figures["rocketmq_half_messages", "orders"] == 1
    assert figures["rocketmq_commit_messages_total", "orders"] == 3
    assert figures["rocketmq_finish_message_latency_count", "orders"] == 3
    assert figures["rocketmq_messages_in_total", "orders"] == 6
    assert figures["rocketmq_messages_out_total", "orders"] == 3
    assert figures["rocketmq_storage_flush_seconds_count", None] >= 6
    assert figures["rocketmq_producer_connections", None] == 1
    assert 'zone="a"' in page_at(port)
    broker.process.stop()
    with pytest.raises(OSError, match="refused"):
        scraped(port)
