"""Metrics of half messages, decisions and check-backs."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client import Metric

from rocketmq_broker.metrics.families import Families
from rocketmq_broker.metrics.sources import MetricsSources, read_consistently
from rocketmq_broker.transaction.counts import TransactionCounts
from rocketmq_broker.transaction.decision import Refusal


def transaction_metrics(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    """Yields all metrics of transactions. Reads each pending transaction."""
    yield from _pending(families, sources)
    yield from _outcomes(families, sources)
    yield from _checks(families, sources.transactions.counts)
    yield from _operated(families, sources.transactions.counts)
    discarded = [((group,), messages) for group, messages in read_consistently(sources.parked.discarded).items()]
    yield families.gauges(
        "rocketmq_discarded_messages", "Discarded messages that have not been resumed", ("producer_group",), discarded
    )


def _pending(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    pending = read_consistently(lambda: list(sources.transactions))
    by_topic = Counter(transaction.topic for transaction in pending)
    by_topic.update(
        dict.fromkeys(read_consistently(lambda: list(sources.transactions.outcomes)), 0)
    )  # The value is 0 for a topic without pending transactions.
    oldest_ms = min((transaction.begun_ms for transaction in pending), default=None)
    age_s = max(0, sources.clock() - oldest_ms) / 1000 if oldest_ms is not None else 0.0
    counts = [((topic.decode(errors="replace"),), count) for topic, count in by_topic.items()]
    yield families.gauges("rocketmq_half_messages", "Pending transactions, by the topic of their messages", ("topic",), counts)
    yield families.gauge("rocketmq_half_message_oldest_age_seconds", "Age of the oldest pending transaction, or 0", age_s)


def _outcomes(families: Families, sources: MetricsSources) -> Iterator[Metric]:
    outcomes = [
        ((topic.decode(errors="replace"),), outcome)
        for topic, outcome in read_consistently(lambda: list(sources.transactions.outcomes.items()))
    ]
    commits = [(labels, outcome.commits) for labels, outcome in outcomes]
    rollbacks = [(labels, outcome.rollbacks) for labels, outcome in outcomes]
    latencies = [(labels, outcome.finish_latency_s()) for labels, outcome in outcomes]
    yield families.counters("rocketmq_commit_messages_total", "Committed transactions", ("topic",), commits)
    yield families.counters("rocketmq_rollback_messages_total", "Rolled back transactions", ("topic",), rollbacks)
    yield families.histograms("rocketmq_finish_message_latency", "Seconds from half message to commit", ("topic",), latencies)


def _checks(families: Families, counts: TransactionCounts) -> Iterator[Metric]:
    checks = {
        "sent": counts.checks_sent,
        "no_producer": counts.checks_without_producer,
        "held_back": counts.checks_held_back,
        "given_back": counts.checks_given_back,
        "discarded": counts.discards,
        "expired": counts.skips,
        "unreadable": counts.bad_records,
    }
    refusals = read_consistently(lambda: dict(counts.refusals))
    yield families.counters(
        "rocketmq_transaction_checks_total",
        "Transactions that were due for a check-back, by outcome",
        ("outcome",),
        [((outcome,), count) for outcome, count in checks.items()],
    )
    yield families.counters(
        "rocketmq_transaction_refused_decisions_total",
        "Decisions that the broker rejected, by reason",
        ("reason",),
        [((refusal.value,), refusals.get(refusal, 0)) for refusal in Refusal],
    )
    yield families.counter(
        "rocketmq_transaction_unknown_answers_total",
        "UNKNOWN answers of local transactions and check-backs",
        counts.unknown_answers,
    )


def _operated(families: Families, counts: TransactionCounts) -> Iterator[Metric]:
    by_hand = [(("commit",), counts.commits_by_hand), (("rollback",), counts.rollbacks_by_hand)]
    yield families.counters("rocketmq_transaction_decisions_by_hand_total", "Decisions made by operators", ("decision",), by_hand)
    yield families.counter("rocketmq_transaction_resumed_total", "Discarded messages that operators resumed", counts.resumes)
    yield families.counter(
        "rocketmq_transaction_moved_half_messages_total", "Half messages copied to the end of their queue", counts.moves
    )
