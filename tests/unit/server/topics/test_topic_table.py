"""Tests existing topics and the creation of topics."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.topic_table import TopicRules, TopicTable
from rocketmq_broker.store import StoreUnwritable, TopicConfigs, files
from tests.unit.server.conftest import Desk


def table(directory: Path, **rules: object) -> TopicTable:
    configs = TopicConfigs(directory)
    configs.load()
    all_rules = TopicRules(cluster="DefaultCluster", broker_name="broker-a", **rules)
    return TopicTable(configs, all_rules, clock=lambda: 1, check_folder=lambda topic, others: None)


def test_a_new_broker_has_the_topics_that_apaches_has(tmp_path: Path) -> None:
    topics = table(tmp_path)
    schedule = topics.get("SCHEDULE_TOPIC_XXXX")
    assert schedule is not None
    assert (schedule.read_queue_nums, schedule.write_queue_nums) == (18, 18)
    assert {config.topic_name for config in topics} == {
        "SELF_TEST_TOPIC",
        "TBW102",
        "BenchmarkTest",
        "DefaultCluster",
        "broker-a",
        "OFFSET_MOVED_EVENT",
        "SCHEDULE_TOPIC_XXXX",
        "DefaultCluster_REPLY_TOPIC",
    }


def test_the_first_send_makes_a_topic_with_the_lesser_number_of_queues(tmp_path: Path) -> None:
    topics = table(tmp_path, default_topic_queue_nums=8)
    assert topics.for_sending("orders", "TBW102", 4).write_queue_nums == 4
    assert topics.for_sending("credits", "TBW102", 16).write_queue_nums == 8
    assert topics.for_sending("orders", "TBW102", 4).perm == 6


def test_a_topic_made_by_a_send_is_on_disk_at_once(tmp_path: Path) -> None:
    table(tmp_path).for_sending("orders", "TBW102", 4)
    assert table(tmp_path).get("orders") == TopicConfig("orders", 4, 4)


def test_without_auto_creation_an_unknown_topic_is_refused(tmp_path: Path) -> None:
    topics = table(tmp_path, auto_create_topic_enable=False)
    with pytest.raises(RequestRefused) as refused:
        topics.for_sending("orders", "TBW102", 4)
    assert refused.value.code is ResponseCode.TOPIC_NOT_EXIST


def test_switching_auto_creation_off_counts_for_a_store_made_with_it(tmp_path: Path) -> None:
    table(tmp_path).persist_changes()
    with pytest.raises(RequestRefused):
        table(tmp_path, auto_create_topic_enable=False).for_sending("orders", "TBW102", 4)


@pytest.mark.parametrize("name", ["", " ", "with space", "slash/es", "../up", "x" * 128])
def test_a_name_that_no_topic_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        table(tmp_path).for_sending(name, "TBW102", 4)
    assert refused.value.code is ResponseCode.SYSTEM_ERROR


@pytest.mark.parametrize("name", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC"])
def test_nobody_sends_to_the_brokers_own_topics(tmp_path: Path, name: str) -> None:
    topics = table(tmp_path)
    topics.internal(name, 1)
    with pytest.raises(RequestRefused) as refused:
        topics.for_sending(name, "TBW102", 4)
    assert (refused.value.code, refused.value.remark) == (
        ResponseCode.NO_PERMISSION,
        f"Sending message to topic[{name}] is forbidden.",
    )


def test_a_topic_that_may_only_be_read_takes_no_messages(tmp_path: Path) -> None:
    topics = table(tmp_path)
    topics.for_sending("orders", "TBW102", 4)
    topics.update(TopicConfig("orders", 4, 4, perm=4))
    with pytest.raises(RequestRefused) as refused:
        topics.for_sending("orders", "TBW102", 4)
    assert refused.value.code is ResponseCode.NO_PERMISSION


def test_system_topics_are_neither_changed_nor_deleted(tmp_path: Path) -> None:
    topics = table(tmp_path)
    for name in ("TBW102", "DefaultCluster", "broker-a", "rmq_sys_anything"):
        with pytest.raises(RequestRefused):
            topics.update(TopicConfig(name))
        with pytest.raises(RequestRefused):
            topics.delete(name)


def test_a_deleted_topic_is_gone_and_can_be_made_anew(tmp_path: Path) -> None:
    topics = table(tmp_path)
    topics.for_sending("orders", "TBW102", 4)
    topics.delete("orders")
    assert topics.get("orders") is None
    assert table(tmp_path).get("orders") is None
    assert topics.for_sending("orders", "TBW102", 2).write_queue_nums == 2


def test_every_change_is_told(tmp_path: Path) -> None:
    topics = table(tmp_path)
    told: list[str] = []
    topics.on_change = told.append
    topics.for_sending("orders", "TBW102", 4)
    topics.for_sending("orders", "TBW102", 4)
    topics.retry_topic("g", 1)
    topics.delete("orders")
    assert told == ["orders", "%RETRY%g", "orders"]


def test_a_retry_topic_is_made_by_a_send_even_without_auto_creation(tmp_path: Path) -> None:
    topics = table(tmp_path, auto_create_topic_enable=False)
    assert topics.for_sending("%RETRY%g", "TBW102", 4).write_queue_nums == 1


def test_a_topic_of_the_brokers_own_is_on_disk_before_a_message_in_it_is_acknowledged(tmp_path: Path) -> None:
    topics = table(tmp_path)
    topics.dead_letter_topic("g")
    topics.read_by_others("TRANS_CHECK_MAX_TIME_TOPIC", 1)
    after_a_kill = table(tmp_path)
    assert after_a_kill.get("%DLQ%g") == TopicConfig("%DLQ%g", 1, 1)
    assert after_a_kill.get("TRANS_CHECK_MAX_TIME_TOPIC") is not None


TAKES_A_MESSAGE: tuple[Callable[[TopicTable], TopicConfig], ...] = (
    lambda topics: topics.for_sending("orders", "TBW102", 4),
    lambda topics: topics.dead_letter_topic("g"),
    lambda topics: topics.read_by_others("TRANS_CHECK_MAX_TIME_TOPIC", 1),
)


@pytest.mark.parametrize("take", TAKES_A_MESSAGE)
def test_no_message_is_taken_for_a_topic_that_a_crash_would_forget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[TopicTable], TopicConfig]
) -> None:
    topics = table(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(TopicConfigs, "persist", _disk_full)
        for _ in range(2):
            with pytest.raises(StoreUnwritable, match=r"cannot store the settings of topic \S+: No space left on device"):
                take(topics)
    config = take(topics)
    assert table(tmp_path).get(config.topic_name) == config


def test_a_change_that_the_disk_refused_is_stored_before_the_next_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = table(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(TopicConfigs, "persist", _disk_full)
        with pytest.raises(OSError, match="No space left"):
            topics.update(TopicConfig("orders", 2, 2))
    assert topics.for_sending("orders", "TBW102", 4).write_queue_nums == 2
    assert table(tmp_path).get("orders") == TopicConfig("orders", 2, 2)


def _disk_full(configs: TopicConfigs) -> None:
    raise OSError("No space left on device")


def test_topics_that_the_name_server_lists_as_ordered_are(tmp_path: Path) -> None:
    topics = table(tmp_path)
    topics.for_sending("orders", "TBW102", 4)
    topics.set_order_topics({"orders"})
    assert topics.existing("orders").order
    topics.set_order_topics(set())
    assert not topics.existing("orders").order


def test_topics_are_bounded_and_those_that_there_are_go_on(tmp_path: Path) -> None:
    bounded = table(tmp_path, max_topics=len(table(tmp_path).configs) + 1)
    bounded.for_sending("orders", "TBW102", 4)
    with pytest.raises(RequestRefused, match="maxTopicNum="):
        bounded.for_sending("credits", "TBW102", 4)
    with pytest.raises(RequestRefused, match="maxTopicNum="):
        bounded.update(TopicConfig("credits"))
    with pytest.raises(RequestRefused, match="maxTopicNum="):
        bounded.for_sending("%RETRY%unknown", "", 1)
    bounded.update(TopicConfig("orders", 2, 2))
    assert bounded.retry_topic("g", 1).topic_name == "%RETRY%g"


def test_topics_whose_folders_the_store_cannot_hold_are_refused_before_they_exist(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ignores_case", lambda path: True)
    desk.topics.update(TopicConfig("orders", 4, 4))
    desk.topics.retry_topic("credits", 1)
    refusals = {
        "Orders": lambda: desk.topics.update(TopicConfig("Orders", 4, 4)),
        "ORDERS": lambda: desk.topics.for_sending("ORDERS", "TBW102", 4),
        "%RETRY%Credits": lambda: desk.topics.retry_topic("Credits", 1),
    }
    for topic, create in refusals.items():
        with pytest.raises(RequestRefused, match=f"^topic {topic} cannot be stored beside topic "):
            create()
        assert desk.topics.get(topic) is None
    desk.topics.delete("orders")
    desk.topics.update(TopicConfig("Orders", 4, 4))
    assert desk.topics.for_sending("Orders", "TBW102", 4).write_queue_nums == 4
