import time
from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from credit_service.adapters.credit_metrics import CountedCrediting, HoldsCollector
from credit_service.domain.credit import Credit, CreditOutcome
from rocketmq_broker.client import ConsumeContext, QueueProgress
from rocketmq_broker.message import MessageQueue
from service_runtime.failing.holds import HoldCause, Holds
from tests.component.credit_service.conftest import a_context, a_credit, a_reversal


class Crediting:
    def credit(self, credits: Sequence[Credit], context: ConsumeContext) -> list[CreditOutcome | None]:
        return [CreditOutcome.CREDITED, None, CreditOutcome.ALREADY_CREDITED][: len(credits)]


class Consumer:
    dead_letters: int | None = 2

    def count_dead_letters(self) -> int | None:
        return self.dead_letters

    def progress(self) -> list[QueueProgress]:
        return [QueueProgress(MessageQueue("orders", "broker-a", number), 20, 0.0) for number in range(2)]


def test_each_outcome_is_counted_by_the_kind_of_entry() -> None:
    registry = CollectorRegistry()
    crediting = CountedCrediting(Crediting(), registry)
    crediting.credit([a_credit("1"), a_credit("2"), a_reversal("3")], a_context())
    counts = {
        (kind, outcome): registry.get_sample_value("credit_entries_total", {"kind": kind, "outcome": outcome})
        for kind, outcome in [("credit", "CREDITED"), ("credit", "LATER"), ("reversal", "ALREADY_CREDITED")]
    }
    assert set(counts.values()) == {1}


def test_what_is_held_and_what_waits_is_read_at_each_scrape() -> None:
    registry, holds = CollectorRegistry(), Holds(now_s=time.monotonic)
    registry.register(HoldsCollector(holds, Consumer()))  # type: ignore[arg-type]
    assert registry.get_sample_value("credit_held_orders") == 0
    with holds.batch(3) as batch:
        batch.hold(HoldCause.OUTAGE, "Redis is away")
        assert registry.get_sample_value("credit_held_orders") == 3
    assert registry.get_sample_value("credit_held_orders") == 0
    assert registry.get_sample_value("credit_unacknowledged_messages") == 40
    assert registry.get_sample_value("credit_dead_letters") == 2
    Consumer.dead_letters = None
    assert registry.get_sample_value("credit_dead_letters") is None
