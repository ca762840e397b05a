from pathlib import Path

from rocketmq_broker.cluster.spreading import copy_topics
from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.store.tables.subscription_groups import SubscriptionGroups
from rocketmq_broker.store.tables.topic_configs import TopicConfigs

NOW_MS = 1_700_000_000_000


def made(store: Path, *topics: TopicConfig, groups: tuple[str, ...] = ()) -> Path:
    (store / "config").mkdir(parents=True)
    known_topics, known_groups = TopicConfigs(store / "config"), SubscriptionGroups(store / "config")
    for topic in topics:
        known_topics.put(topic, NOW_MS)
    for group in groups:
        known_groups.put(SubscriptionGroupConfig(group), NOW_MS)
    known_topics.persist()
    known_groups.persist()
    return store


def topics_of(store: Path) -> dict[str, int]:
    table = TopicConfigs(store / "config")
    table.load()
    return {topic.topic_name: topic.read_queue_nums for topic in table}


def test_a_newcomer_gets_the_topics_and_groups_of_all_members(tmp_path: Path) -> None:
    first = made(tmp_path / "a", TopicConfig("orders", read_queue_nums=4, write_queue_nums=4), groups=("credit",))
    second = made(tmp_path / "b", TopicConfig("orders", read_queue_nums=8, write_queue_nums=8), TopicConfig("%RETRY%credit"))
    assert copy_topics(tmp_path / "c", [first, second], excluded=frozenset(), now_ms=NOW_MS) == 2
    assert topics_of(tmp_path / "c").keys() == {"orders", "%RETRY%credit"}
    assert topics_of(tmp_path / "c")["orders"] == 4, "the first member decides"
    groups = SubscriptionGroups(tmp_path / "c" / "config")
    groups.load()
    assert [group.group_name for group in groups] == ["credit"]


def test_what_belongs_to_one_broker_stays_there(tmp_path: Path) -> None:
    own = ["broker-a", "RMQ_SYS_TRANS_HALF_TOPIC", "SCHEDULE_TOPIC_XXXX", "%DLQ%credit", "rmq_sys_PARKED_MARK_TOPIC"]
    first = made(tmp_path / "a", *map(TopicConfig, own), groups=("CID_RMQ_SYS_TRANS",))
    assert copy_topics(tmp_path / "c", [first], excluded=frozenset({"broker-a"}), now_ms=NOW_MS) == 0
