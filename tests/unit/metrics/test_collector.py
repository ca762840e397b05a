"""Tests the scraped metrics after events. The broker's parts are real, but have no sockets."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.inner_message import InnerMessage
from rocketmq_broker.metrics import BrokerCollector, MetricsSources
from rocketmq_broker.metrics.sources import read_consistently
from rocketmq_broker.metrics.storage import size_on_disk
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, ConsumeType, SubscriptionData
from rocketmq_broker.server.clients.client_channel import ClientChannel
from rocketmq_broker.server.clients.consumer_groups import ConsumerGroups
from rocketmq_broker.server.clients.producer_groups import ProducerGroups
from rocketmq_broker.server.parked import ParkedPlace, Treatment
from rocketmq_broker.server.popping import InHand
from rocketmq_broker.server.popping.hidden_messages import CheckPoint, HiddenMessages
from rocketmq_broker.server.popping.pop_log import PopEntry
from rocketmq_broker.server.statistics.histogram import Histogram
from rocketmq_broker.server.statistics.statistics import BrokerStatistics
from rocketmq_broker.server.statistics.traffic import count
from rocketmq_broker.transaction.decision import Refusal
from tests.unit.server.transaction_broker import DISCARD_TOPIC, Producer, TransactionBroker

COMMIT, ROLLBACK = 8, 12


class Scraper:
    """A broker's parts and their metrics."""

    def __init__(self) -> None:
        self.broker = TransactionBroker()
        self.producer = Producer()
        self.broker.online(self.producer)
        self.statistics = BrokerStatistics(start_ms=0)
        self.producers = ProducerGroups()
        self.consumers = ConsumerGroups(lambda group, connections: None)
        self.hidden = HiddenMessages()
        self.group_commit = SimpleNamespace(flush_times_s=Histogram((0.001, 0.01)))
        sources = MetricsSources(
            labels={"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a"},
            transactions=self.broker.messages,
            statistics=self.statistics,
            group_commit=cast(Any, self.group_commit),
            store=self.broker.store,
            consumer_offsets=self.broker.consumer_offsets,
            parked=self.broker.parked,
            in_hand=InHand(self.hidden, self.broker.consumer_offsets, self.broker.store),
            topic_table=cast(Any, ["orders", "TBW102"]),
            subscription_groups=cast(Any, SimpleNamespace(groups=["credits"])),
            producer_groups=self.producers,
            consumer_groups=self.consumers,
            count_connections=lambda: 3,
            registered_with=lambda: {"10.0.0.1:9876": True, "10.0.0.2:9876": False},
            clock=lambda: self.broker.now_ms,
        )
        self.registry = CollectorRegistry()
        self.registry.register(BrokerCollector(sources))

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(
            name, {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a", **labels}
        )

    def names(self) -> set[str]:
        text = generate_latest(self.registry).decode()
        return {sample.name for family in text_string_to_metric_families(text) for sample in family.samples}


@pytest.fixture
def scrape(monkeypatch: pytest.MonkeyPatch) -> Scraper:
    monkeypatch.setattr("rocketmq_broker.store.upkeep.expiry.Expiry.disk_used_ratio", lambda store: 0.25)
    return Scraper()


def test_a_half_message_is_pending_until_it_is_decided(scrape: Scraper) -> None:
    half = scrape.broker.send(scrape.producer, "A")
    scrape.broker.now_ms += 1500
    assert scrape("rocketmq_half_messages", topic="orders") == 1
    assert scrape("rocketmq_half_message_oldest_age_seconds") == 1.5

    scrape.broker.end(scrape.producer, half, COMMIT)

    assert scrape("rocketmq_half_messages", topic="orders") == 0
    assert scrape("rocketmq_half_message_oldest_age_seconds") == 0
    assert scrape("rocketmq_commit_messages_total", topic="orders") == 1
    assert scrape("rocketmq_rollback_messages_total", topic="orders") == 0


def test_the_finish_latency_runs_from_half_message_to_commit(scrape: Scraper) -> None:
    for wait_ms in (0, 5_000, 5_001):
        half = scrape.broker.send(scrape.producer, f"A{wait_ms}")
        scrape.broker.now_ms += wait_ms
        scrape.broker.end(scrape.producer, half, COMMIT)
    scrape.broker.end(scrape.producer, scrape.broker.send(scrape.producer, "B"), ROLLBACK)

    assert scrape("rocketmq_finish_message_latency_bucket", topic="orders", le="5") == 2
    assert scrape("rocketmq_finish_message_latency_bucket", topic="orders", le="60") == 3
    assert scrape("rocketmq_finish_message_latency_count", topic="orders") == 3
    assert scrape("rocketmq_finish_message_latency_sum", topic="orders") == pytest.approx(10.001)
    assert scrape("rocketmq_rollback_messages_total", topic="orders") == 1


def test_checks_are_told_apart_by_what_became_of_them(scrape: Scraper) -> None:
    scrape.broker.send(scrape.producer, "A")
    scrape.broker.tick(1000)
    scrape.broker.online()
    scrape.broker.tick(2000)
    scrape.broker.online(scrape.producer)
    for _ in range(3):
        scrape.broker.tick(2000)
    scrape.broker.send(scrape.producer, "B")
    scrape.broker.tick(1000)
    scrape.producer.is_writable = False
    scrape.broker.tick(2000)
    scrape.broker.leave(scrape.producer)

    outcomes = {
        outcome: scrape("rocketmq_transaction_checks_total", outcome=outcome)
        for outcome in ("sent", "no_producer", "held_back", "given_back", "discarded", "expired", "unreadable")
    }
    assert outcomes == {
        "sent": 4, "no_producer": 1, "held_back": 1, "given_back": 1, "discarded": 1, "expired": 0, "unreadable": 0,
    }  # fmt: skip


def test_refused_decisions_are_told_apart_by_reason_and_each_reason_is_there_from_the_start(scrape: Scraper) -> None:
    for refusal in Refusal:
        assert scrape("rocketmq_transaction_refused_decisions_total", reason=refusal.value) == 0
    half = scrape.broker.send(scrape.producer, "A")
    scrape.broker.end(scrape.producer, half, COMMIT)
    with pytest.raises(Exception, match="committed already"):
        scrape.broker.end(scrape.producer, half, ROLLBACK)

    assert scrape("rocketmq_transaction_refused_decisions_total", reason="already_committed") == 1


def test_traffic_has_the_labels_of_rocketmq_and_leaves_retries_out(scrape: Scraper) -> None:
    traffic = scrape.statistics.traffic
    count(traffic.normal, b"orders", 2, 300)
    count(traffic.normal, b"orders", 1, 100)
    count(traffic.transactional, b"orders", 5, 1000)
    count(traffic.normal, b"%RETRY%credits", 9, 9)
    count(traffic.pulled, (b"orders", "credits"), 7, 1400)

    normal = {"topic": "orders", "message_type": "normal", "is_system": "false"}
    assert (scrape("rocketmq_messages_in_total", **normal), scrape("rocketmq_throughput_in_total", **normal)) == (3, 400)
    assert scrape("rocketmq_messages_in_total", **{**normal, "message_type": "transaction"}) == 5
    assert scrape("rocketmq_messages_in_total", **{**normal, "topic": "%RETRY%credits"}) is None
    pulled = {"topic": "orders", "consumer_group": "credits", "is_system": "false"}
    assert (scrape("rocketmq_messages_out_total", **pulled), scrape("rocketmq_throughput_out_total", **pulled)) == (7, 1400)


def test_dead_letters_count_for_their_group(scrape: Scraper) -> None:
    scrape.statistics.flows.on_arrival(b"%DLQ%credits", 0, 4, 400)

    labels = {"consumer_group": "credits", "topic": "%DLQ%credits", "is_system": "false"}
    assert scrape("rocketmq_send_to_dlq_messages_total", **labels) == 4


def test_discarded_messages_count_until_they_are_resumed(scrape: Scraper) -> None:
    scrape.broker.online(scrape.producer)
    scrape.broker.send(scrape.producer, "A")
    for _ in range(4):
        scrape.broker.tick(2000)
    assert scrape("rocketmq_discarded_messages", producer_group="order_service") == 1

    (gone,) = scrape.broker.records(DISCARD_TOPIC)
    scrape.broker.resume(scrape.producer, offset_message_id(gone.store_host, gone.commit_log_offset))

    assert scrape("rocketmq_discarded_messages", producer_group="order_service") == 0


def test_dead_letters_count_until_they_are_treated(scrape: Scraper) -> None:
    for number in range(3):
        scrape.broker.store.append(
            InnerMessage(
                topic=b"%DLQ%credits",
                queue_id=0,
                body=b"order",
                properties=b"",
                flag=0,
                sys_flag=0,
                born_timestamp=number,
                born_host=bytes(8),
            ),
            number,
        )
    scrape.broker.flush()
    assert scrape("rocketmq_dead_letters", consumer_group="credits") == 3

    letter = scrape.broker.records("%DLQ%credits")[1]
    place = ParkedPlace(letter.topic, 0, 1, letter.commit_log_offset)
    scrape.broker.parked.append_mark(place, Treatment.DISMISSED, now_ms=1, by_host=bytes(8), reason="a test")
    scrape.broker.flush()

    assert scrape("rocketmq_dead_letters", consumer_group="credits") == 2


def test_a_groups_lag_is_what_its_queues_hold_beyond_its_offsets(scrape: Scraper) -> None:
    for number in range(3):
        half = scrape.broker.send(scrape.producer, f"A{number}")
        scrape.broker.end(scrape.producer, half, COMMIT)
    scrape.broker.consumer_offsets.commit("credits", "orders", 2, 1)
    scrape.broker.notes.finish()

    labels = {"consumer_group": "credits", "topic": "orders", "is_retry": "false", "is_system": "false"}
    assert scrape("rocketmq_consumer_lag_messages", **labels) == 2
    assert b"CID_RMQ_SYS_TRANS" not in generate_latest(scrape.registry)


def test_what_a_group_popped_and_has_not_acknowledged_is_in_flight(scrape: Scraper) -> None:
    popped = [("orders", 0, [3, 4]), ("orders", 1, [7]), ("%RETRY%credits_orders", 0, [0])]
    for log_offset, (topic, queue_id, offsets) in enumerate(popped):
        entry = PopEntry("credits", topic, queue_id, offsets[0], offsets[-1] + 1, offsets, pop_time_ms=0, invisible_ms=1000)
        scrape.hidden.hide(CheckPoint(entry, log_offset))

    labels = {"consumer_group": "credits", "topic": "orders", "is_system": "false"}
    assert scrape("rocketmq_consumer_inflight_messages", is_retry="false", **labels) == 3
    assert scrape("rocketmq_consumer_inflight_messages", is_retry="true", **labels) == 1

    scrape.hidden.put(entry.queue, 0, None)
    assert scrape("rocketmq_consumer_inflight_messages", is_retry="true", **labels) is None


def test_refused_pops_are_counted_by_group_and_topic(scrape: Scraper) -> None:
    assert scrape("rocketmq_pops_refused_total", consumer_group="credits", topic="orders") is None
    scrape.statistics.traffic.pops_refused[b"orders", "credits"] = 2
    assert scrape("rocketmq_pops_refused_total", consumer_group="credits", topic="orders") == 2


def test_a_group_whose_members_subscribe_to_different_messages_is_named(scrape: Scraper) -> None:
    for number, topic in enumerate(("orders", "refunds")):
        channel = ClientChannel(Producer(f"127.0.0.1:{number}").connection, f"client-{number}", "JAVA", 407, 0)
        for group, subscribed in (("credits", topic), ("mails", "orders")):
            data = ConsumerData(group_name=group, subscription_data_set=[SubscriptionData(topic=subscribed)])
            scrape.consumers.register(data, channel)
    assert scrape("rocketmq_consumer_subscriptions_differ", consumer_group="credits") == 1
    assert scrape("rocketmq_consumer_subscriptions_differ", consumer_group="mails") is None


def test_clients_are_counted_by_language_and_version(scrape: Scraper) -> None:
    for number in range(2):
        connection = Producer(f"127.0.0.1:{number}").connection
        channel = ClientChannel(connection, f"client-{number}", "JAVA", 407, 0)
        scrape.producers.register("order_service", channel)
        scrape.consumers.register(ConsumerData(group_name="credits", consume_type=ConsumeType.CONSUME_PASSIVELY), channel)

    client = {"language": "java", "version": "407", "protocol_type": "remoting"}
    assert scrape("rocketmq_producer_connections", **client) == 2
    assert scrape("rocketmq_consumer_connections", consumer_group="credits", consume_mode="passive", **client) == 2
    assert scrape("rocketmq_connections") == 3
    assert (scrape("rocketmq_topic_number"), scrape("rocketmq_consumer_group_number")) == (2, 1)


def test_the_store_tells_of_flushes_and_of_refused_messages(scrape: Scraper) -> None:
    scrape.group_commit.flush_times_s.observe(0.004)
    assert scrape("rocketmq_storage_flush_seconds_bucket", le="0.001") == 0
    assert scrape("rocketmq_storage_flush_seconds_bucket", le="0.01") == 1
    assert scrape("rocketmq_storage_disk_used_ratio") == 0.25
    assert scrape("rocketmq_storage_writable") == 1

    scrape.broker.store.refuse_writes("the disk is full")

    assert scrape("rocketmq_storage_writable") == 0


def test_the_size_on_disk_counts_blocks_and_no_holes(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with (tmp_path / "folder" / "segment").open("wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(1 << 30)
        os.fsync(file.fileno())

    assert 10_000 <= size_on_disk(tmp_path) < 1 << 20


def test_operators_see_what_they_mended(scrape: Scraper) -> None:
    counts = scrape.broker.messages.counts
    counts.commits_by_hand, counts.rollbacks_by_hand, counts.resumes, counts.moves = 1, 2, 3, 4

    assert scrape("rocketmq_transaction_decisions_by_hand_total", decision="commit") == 1
    assert scrape("rocketmq_transaction_decisions_by_hand_total", decision="rollback") == 2
    assert scrape("rocketmq_transaction_resumed_total") == 3
    assert scrape("rocketmq_transaction_moved_half_messages_total") == 4


def test_every_metric_is_explained_to_operators(scrape: Scraper) -> None:
    scrape.broker.end(scrape.producer, scrape.broker.send(scrape.producer, "A"), COMMIT)
    page = (Path(__file__).parents[3] / "docs" / "observing.md").read_text()
    families = {family.name for family in scrape.registry.collect()}

    assert sorted(name for name in families if name not in page) == []


def test_a_table_that_changes_while_it_is_read_is_read_again() -> None:
    answers = iter([RuntimeError("dictionary changed size during iteration"), RuntimeError("again"), 7])

    def read() -> int:
        answer = next(answers)
        if isinstance(answer, RuntimeError):
            raise answer
        return answer

    assert read_consistently(read) == 7


def test_a_name_server_that_does_not_know_the_broker_is_seen(scrape: Scraper) -> None:
    assert scrape("rocketmq_broker_registered", name_server="10.0.0.1:9876") == 1
    assert scrape("rocketmq_broker_registered", name_server="10.0.0.2:9876") == 0
