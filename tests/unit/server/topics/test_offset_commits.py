"""Tests which groups' offsets the broker keeps."""

from pathlib import Path

import pytest

from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.topics.offset_commits import OffsetCommits
from rocketmq_broker.server.topics.subscription_group_table import SubscriptionGroupTable
from rocketmq_broker.server.topics.topic_table import TopicRules, TopicTable
from rocketmq_broker.store import ConsumerOffsets, SubscriptionGroups, TopicConfigs


class Tables:
    def __init__(self, root: Path, *, auto_create: bool = True, max_groups: int = 100, max_offsets: int = 5) -> None:
        self.offsets = ConsumerOffsets(root)
        rules = TopicRules(cluster="c", broker_name="b")
        self.topics = TopicTable(TopicConfigs(root), rules, clock=lambda: 0, check_folder=lambda topic, others: None)
        self.topics.update(TopicConfig("orders", 4, 4))
        self.groups = SubscriptionGroupTable(
            SubscriptionGroups(root), auto_create=auto_create, clock=lambda: 0, max_groups=max_groups
        )
        self.commits = OffsetCommits(self.offsets, self.topics, self.groups, max_offsets)

    def refused(self, group: str, topic: str, queue_id: int = 0) -> ResponseCode:
        before = self.offsets.as_json()
        with pytest.raises(RequestRefused) as refusal:
            self.commits.commit(group, topic, queue_id, 7)
        assert self.offsets.as_json() == before
        return refusal.value.code


def test_a_group_has_offsets_only_in_queues_that_there_are(tmp_path: Path) -> None:
    tables = Tables(tmp_path)
    tables.commits.commit("credits", "orders", 3, 7)
    assert tables.refused("credits", "no-such-topic") is ResponseCode.TOPIC_NOT_EXIST
    assert tables.refused("credits", "orders", 4) is ResponseCode.SYSTEM_ERROR
    assert tables.refused("credits", "orders", -1) is ResponseCode.SYSTEM_ERROR
    assert tables.offsets.as_json() == {"orders@credits": {3: 7}}


def test_made_up_groups_are_as_many_as_groups_may_be(tmp_path: Path) -> None:
    tables = Tables(tmp_path, max_groups=10, max_offsets=20)
    tables.groups.find("credits")
    known = len(tables.groups.groups)
    for number in range(10):
        tables.commits.commit(f"group-{number}", "orders", 0, 7)
    assert tables.refused("one-more", "orders") is ResponseCode.SYSTEM_BUSY
    tables.commits.commit("group-1", "orders", 1, 7)
    tables.commits.commit("credits", "orders", 0, 7)
    assert len(tables.groups.groups) == known
    without = Tables(tmp_path / "other", auto_create=False)
    assert without.refused("credits", "orders") is ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST


def test_a_group_begins_though_others_have_all_the_offsets_that_may_be(tmp_path: Path) -> None:
    tables = Tables(tmp_path, max_offsets=100)
    tables.topics.update(TopicConfig("many", 200, 200))
    for number in range(100):
        tables.commits.commit("greedy", "many", number, 7)
    assert tables.refused("greedy", "many", 100) is ResponseCode.SYSTEM_BUSY
    for number in range(32):
        tables.commits.commit("credits", "many", number, 7)
    assert tables.refused("credits", "many", 32) is ResponseCode.SYSTEM_BUSY


def test_one_group_has_a_share_of_the_offsets(tmp_path: Path) -> None:
    tables = Tables(tmp_path, max_offsets=1_000_000)
    for number in range(6):
        tables.topics.update(TopicConfig(f"topic-{number}", 10_000, 10_000))
    for number in range(50_000):
        tables.commits.commit("greedy", f"topic-{number // 10_000}", number % 10_000, 7)
    with pytest.raises(RequestRefused, match="too many offsets of group greedy: 50000, limit 50000"):
        tables.commits.commit("greedy", "topic-5", 0, 7)
    tables.commits.commit("greedy", "topic-0", 0, 8)
    tables.commits.commit("credits", "topic-5", 0, 7)


def test_no_bound_costs_a_group_the_place_that_it_has(tmp_path: Path) -> None:
    tables = Tables(tmp_path, max_offsets=1)  # and as many again for groups with few
    tables.offsets.commit("from-an-older-broker", "deleted-topic", 0, 1)
    tables.commits.commit("credits", "orders", 0, 1)
    assert tables.refused("credits", "orders", 1) is ResponseCode.SYSTEM_BUSY
    tables.commits.commit("credits", "orders", 0, 2)
    tables.commits.commit("from-an-older-broker", "deleted-topic", 0, 2)
    assert tables.offsets.as_json() == {"deleted-topic@from-an-older-broker": {0: 2}, "orders@credits": {0: 2}}
    tables.offsets.remove_topic("deleted-topic")
    tables.commits.commit("credits", "orders", 1, 1)
