from typing import Any, cast

from prometheus_client import CollectorRegistry

from credit_service.adapters.credit_metrics import CreditCollector
from credit_service.adapters.ledger import Ledger
from rocketmq_broker.client import QueueProgress
from rocketmq_broker.databases.inbox import InboxState
from rocketmq_broker.message import MessageQueue
from service_runtime.database.database_errors import DatabaseUnavailable
from service_runtime.inbox.backlog import InboxBacklog
from service_runtime.messaging.consumer_thread import ConsumerThread

NAMES = ("waiting", "failed", "parked", "oldest_seconds")


class CreditDatabase:
    """A ledger and an inbox, which the test can make unreachable."""

    is_away = False

    @property
    def inbox(self) -> "CreditDatabase":
        return self

    def last_written(self) -> int:
        if self.is_away:
            raise DatabaseUnavailable("the database does not answer")
        return 7

    def state(self) -> InboxState:
        if self.is_away:
            raise DatabaseUnavailable("the database does not answer")
        return InboxState(3, 2, 1, 4, oldest_new_at_ms=9_000, oldest_received_at_ms=8_000, last_error="no")


class Consumer:
    dead_letters: int | None = 2
    queues: list[QueueProgress] | None = [QueueProgress(MessageQueue("orders", "broker-a", number), 20, 0.0) for number in (0, 1)]

    def count_dead_letters(self) -> int | None:
        return self.dead_letters

    def progress(self) -> list[QueueProgress] | None:
        return self.queues


def registry_of(database: CreditDatabase, consumer: Consumer) -> CollectorRegistry:
    registry, inbox = CollectorRegistry(), cast(Any, database)
    backlog = InboxBacklog(inbox, "credit_service", now_ms=lambda: 10_500)
    registry.register(backlog)
    registry.register(CreditCollector(cast(Ledger, database), cast(ConsumerThread, consumer)))
    return registry


def test_ledger_inbox_and_queues_are_read_at_each_scrape() -> None:
    registry = registry_of(CreditDatabase(), Consumer())
    assert registry.get_sample_value("credit_entries_total") == 7
    assert [registry.get_sample_value(f"credit_inbox_{name}") for name in NAMES] == [5, 2, 4, 2.5]
    assert registry.get_sample_value("credit_unacknowledged_messages") == 40
    assert registry.get_sample_value("credit_dead_letters") == 2


def test_what_does_not_answer_is_missing_and_the_rest_is_there() -> None:
    database, consumer = CreditDatabase(), Consumer()
    registry = registry_of(database, consumer)
    database.is_away = True
    assert registry.get_sample_value("credit_entries_total") is None
    assert {registry.get_sample_value(f"credit_inbox_{name}") for name in NAMES} == {None}
    assert registry.get_sample_value("credit_dead_letters") == 2
    database.is_away, consumer.dead_letters, consumer.queues = False, None, None
    assert registry.get_sample_value("credit_dead_letters") is None
    assert registry.get_sample_value("credit_unacknowledged_messages") is None
    assert registry.get_sample_value("credit_inbox_waiting") == 5
