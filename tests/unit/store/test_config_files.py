from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.store import ConsumerOffsets, DamagedStore, DelayOffsets, SubscriptionGroups, TableVersion, TopicConfigs
from rocketmq_broker.store.tables import fastjson

CONSUMER_OFFSETS = """{
\t"offsetTable":{
\t\t"%RETRY%group@group":{0:0
\t\t},
\t\t"orders@group":{0:250,1:250,2:0,3:9007199254740993
\t\t}
\t}
}"""

DELAY_OFFSETS = """{
\t"offsetTable":{2:1,10:7
\t}
}"""

TOPICS = """{
\t"dataVersion":{
\t\t"counter":16,
\t\t"timestamp":1795261993050
\t},
\t"topicConfigTable":{
\t\t"orders":{
\t\t\t"order":false,
\t\t\t"perm":6,
\t\t\t"readQueueNums":4,
\t\t\t"topicFilterType":"SINGLE_TAG",
\t\t\t"topicName":"orders",
\t\t\t"topicSysFlag":0,
\t\t\t"writeQueueNums":4
\t\t}
\t}
}"""

GROUPS = """{
\t"dataVersion":{
\t\t"counter":7,
\t\t"timestamp":1795261989884
\t},
\t"subscriptionGroupTable":{
\t\t"credit_service":{
\t\t\t"brokerId":0,
\t\t\t"consumeBroadcastEnable":true,
\t\t\t"consumeEnable":true,
\t\t\t"consumeFromMinEnable":true,
\t\t\t"groupName":"credit_service",
\t\t\t"notifyConsumerIdsChangedEnable":true,
\t\t\t"retryMaxTimes":16,
\t\t\t"retryQueueNums":1,
\t\t\t"whichBrokerWhenConsumeSlowly":1
\t\t}
\t}
}"""


def loaded(table: type, folder: Path) -> Any:
    """Returns the table as its file in the folder has it."""
    found = table(folder)
    found.load()
    return found


@pytest.mark.parametrize(
    ("table", "name", "content"),
    [
        (ConsumerOffsets, "consumerOffset.json", CONSUMER_OFFSETS),
        (DelayOffsets, "delayOffset.json", DELAY_OFFSETS),
        (TopicConfigs, "topics.json", TOPICS),
        (SubscriptionGroups, "subscriptionGroup.json", GROUPS),
    ],
)
def test_a_file_as_rocketmq_writes_it_is_written_back_identically(tmp_path: Path, table: type, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    found = loaded(table, tmp_path)
    (tmp_path / name).unlink()
    found.persist()
    assert (tmp_path / name).read_text() == content


def test_what_was_loaded_can_be_asked_for(tmp_path: Path) -> None:
    (tmp_path / "consumerOffset.json").write_text(CONSUMER_OFFSETS)
    (tmp_path / "delayOffset.json").write_text(DELAY_OFFSETS)
    (tmp_path / "topics.json").write_text(TOPICS)
    (tmp_path / "subscriptionGroup.json").write_text(GROUPS)
    tables = (ConsumerOffsets, DelayOffsets, TopicConfigs, SubscriptionGroups)
    offsets, delays, topics, groups = (loaded(table, tmp_path) for table in tables)
    found = [offsets.get(*place) for place in (("group", "orders", 1), ("group", "orders", 4), ("x", "orders", 0))]
    assert found == [250, None, None]
    assert offsets.topics_of("group") == {"%RETRY%group", "orders"}
    assert offsets.groups_of("orders") == {"group"}
    assert (delays.get(2), delays.get(10), delays.get(1)) == (1, 7, None)
    assert topics.get("orders") == TopicConfig("orders", 4, 4)
    assert topics.data_version == TableVersion(1795261993050, 16)
    assert groups.get("credit_service") == SubscriptionGroupConfig("credit_service")
    assert groups.data_version.counter == 7


def test_unknown_and_missing_fields_are_borne(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text('{"topicConfigTable":{"t":{"perm":4,"attributes":{}}},"mappingDataVersion":{}}')
    topics = loaded(TopicConfigs, tmp_path)
    assert topics.get("t") == TopicConfig("t", perm=4)


GROUPS_OF_ROCKETMQ_5 = """{
\t"dataVersion":{
\t\t"counter":7,
\t\t"stateVersion":2,
\t\t"timestamp":1795261989884
\t},
\t"forbiddenTable":{
\t\t"credit_service":{
\t\t\t"orders":1
\t\t}
\t},
\t"subscriptionGroupTable":{
\t\t"credit_service":{
\t\t\t"attributes":{},
\t\t\t"brokerId":0,
\t\t\t"consumeBroadcastEnable":true,
\t\t\t"consumeEnable":true,
\t\t\t"consumeFromMinEnable":true,
\t\t\t"consumeMessageOrderly":true,
\t\t\t"consumeTimeoutMinute":15,
\t\t\t"groupName":"credit_service",
\t\t\t"groupRetryPolicy":{
\t\t\t\t"type":"CUSTOMIZED"
\t\t\t},
\t\t\t"groupSysFlag":0,
\t\t\t"notifyConsumerIdsChangedEnable":true,
\t\t\t"retryMaxTimes":16,
\t\t\t"retryQueueNums":1,
\t\t\t"whichBrokerWhenConsumeSlowly":1
\t\t}
\t}
}"""
OFFSETS_OF_ROCKETMQ_5 = """{
\t"dataVersion":{
\t\t"counter":3,
\t\t"stateVersion":0,
\t\t"timestamp":1795261989884
\t},
\t"offsetTable":{
\t\t"orders@group":{0:250
\t\t}
\t}
}"""


def test_a_change_of_a_group_keeps_what_only_rocketmq_5_knows_of_it(tmp_path: Path) -> None:
    (tmp_path / "subscriptionGroup.json").write_text(GROUPS_OF_ROCKETMQ_5)
    groups = loaded(SubscriptionGroups, tmp_path)
    groups.put(SubscriptionGroupConfig("credit_service", retry_max_times=3), 1795261989999)
    groups.persist()
    changes = (('"retryMaxTimes":16', '"retryMaxTimes":3'), ('"counter":7', '"counter":8'), ("1795261989884", "1795261989999"))
    expected = GROUPS_OF_ROCKETMQ_5
    for before, after in changes:
        expected = expected.replace(before, after)
    assert (tmp_path / "subscriptionGroup.json").read_text() == expected


def test_a_group_that_is_made_again_inherits_nothing(tmp_path: Path) -> None:
    (tmp_path / "subscriptionGroup.json").write_text(GROUPS_OF_ROCKETMQ_5)
    groups = loaded(SubscriptionGroups, tmp_path)
    groups.remove("credit_service", 1)
    groups.put(SubscriptionGroupConfig("credit_service"), 2)
    groups.persist()
    assert "consumeMessageOrderly" not in (tmp_path / "subscriptionGroup.json").read_text()


def test_offsets_keep_the_version_that_rocketmq_5_gives_them(tmp_path: Path) -> None:
    (tmp_path / "consumerOffset.json").write_text(OFFSETS_OF_ROCKETMQ_5)
    offsets = loaded(ConsumerOffsets, tmp_path)
    offsets.commit("group", "orders", 0, 251)
    offsets.persist()
    assert (tmp_path / "consumerOffset.json").read_text() == OFFSETS_OF_ROCKETMQ_5.replace("250", "251")


def test_attributes_of_topics_are_kept_as_rocketmq_5_keeps_them(tmp_path: Path) -> None:
    fifo = '"orders":{\n\t\t\t"attributes":{\n\t\t\t\t"message.type":"FIFO"\n\t\t\t},\n\t\t\t'
    content = TOPICS.replace('"orders":{\n\t\t\t', fifo)
    (tmp_path / "topics.json").write_text(content)
    topics = loaded(TopicConfigs, tmp_path)
    assert topics.get("orders") == TopicConfig("orders", 4, 4, attributes={"message.type": "FIFO"})
    (tmp_path / "topics.json").unlink()
    topics.persist()
    assert (tmp_path / "topics.json").read_text() == content


def test_numbers_as_keys_are_only_looked_for_outside_strings() -> None:
    assert fastjson.decode(b'{"a":{0 : 1, -3:2},"{5:6,7:8":"{1:2}","\\"{1:":9}') == {
        "a": {"0": 1, "-3": 2},
        "{5:6,7:8": "{1:2}",
        '"{1:': 9,
    }


@pytest.mark.parametrize(
    "damage",
    [
        *(b"", b"{", b"\0\0\0\0", None, b"[1]"),
        *(b'{"offsetTable":%b}' % held for held in (b'{"orders@g":5}', b'{"orders@g":{p:5}}', b'{"orders@g":{0:null}}', b"[1]")),
    ],
)
def test_a_damaged_file_and_one_that_holds_something_else_give_way_to_their_backup(tmp_path: Path, damage: bytes | None) -> None:
    offsets = ConsumerOffsets(tmp_path)
    for offset in (1, 2):
        offsets.commit("g", "orders", 0, offset)
        offsets.persist()
    path = tmp_path / "consumerOffset.json"
    path.unlink() if damage is None else path.write_bytes(damage)
    found = loaded(ConsumerOffsets, tmp_path)
    assert found.get("g", "orders", 0) == 1
    assert "its backup was read" in (found.complaint or "")


def test_no_file_is_an_empty_table(tmp_path: Path) -> None:
    topics = TopicConfigs(tmp_path / "never made")
    topics.load()
    assert len(topics) == 0


def test_each_change_of_a_table_has_its_own_version(tmp_path: Path) -> None:
    topics = TopicConfigs(tmp_path)
    topics.put(TopicConfig("a"), now_ms=5)
    topics.put(TopicConfig("b"), now_ms=6)
    assert topics.remove("a", now_ms=7)
    assert not topics.remove("a", now_ms=8)
    assert topics.data_version == TableVersion(7, 3)
    assert [config.topic_name for config in topics] == ["b"]
    assert "b" in topics


def test_offsets_are_forgotten_with_their_topic_or_group(tmp_path: Path) -> None:
    offsets = ConsumerOffsets(tmp_path)
    for group in ("g1", "g2"):
        for topic in ("t1", "t2"):
            offsets.commit(group, topic, 0, 1)
    offsets.clone("g1", "g3", "t1")
    offsets.remove_topic("t2")
    offsets.remove_group("g2")
    assert offsets.as_json() == {"t1@g1": {0: 1}, "t1@g3": {0: 1}}


@pytest.mark.parametrize(
    ("damage", "complaint"), [(b"", "is missing or empty: its backup was read"), (b"{", "its backup was read")]
)
def test_what_was_wrong_with_a_file_is_said(tmp_path: Path, damage: bytes, complaint: str) -> None:
    topics = TopicConfigs(tmp_path)
    for name in ("orders", "credits"):
        topics.put(TopicConfig(name), 1)
        topics.persist()
    (tmp_path / "topics.json").write_bytes(damage)
    said = loaded(TopicConfigs, tmp_path).complaint
    assert said is not None
    assert complaint in said
    assert str(tmp_path / "topics.json") in said


def test_topics_of_a_lost_file_are_found_by_their_queues(tmp_path: Path) -> None:
    topics = TopicConfigs(tmp_path)
    topics.put(TopicConfig("orders", read_queue_nums=2), 1)
    lost = topics.add_lost({b"orders": [0], b"credits": [0, 3], b"SCHEDULE_TOPIC_XXXX": [2]}, 2)
    assert lost == ["credits"]
    assert topics.get("credits") == TopicConfig("credits", read_queue_nums=4, write_queue_nums=4)
    assert topics.get("orders") == TopicConfig("orders", read_queue_nums=2)


@pytest.mark.parametrize(
    "content",
    [
        "{nonsense",
        *(
            f'{{"topicConfigTable":{{"orders":{settings}}}}}'
            for settings in ("[]", "null", '{"readQueueNums":"many"}', '{"perm":null}', '{"attributes":["FIFO"]}')
        ),
    ],
)
def test_what_cannot_be_read_and_has_no_backup_is_for_a_person_to_look_at(tmp_path: Path, content: str) -> None:
    (tmp_path / "topics.json").write_text(content)
    with pytest.raises(DamagedStore, match=r"topics\.json"):
        TopicConfigs(tmp_path).load()


def test_a_table_whose_entries_are_encoded_one_by_one_is_written_as_one_that_is_encoded_whole(tmp_path: Path) -> None:
    topics = TopicConfigs(tmp_path)
    for _ in range(2):
        expected = {
            "dataVersion": topics.data_version.as_json(),
            "topicConfigTable": {config.topic_name: dict(sorted(msgspec.to_builtins(config).items())) for config in topics},
        }
        topics.persist()
        assert (tmp_path / "topics.json").read_bytes() == fastjson.encode(expected)
        for name, count in (("a", 1), ('"b"', 2), ("c", 3), ("a", 4)):
            topics.put(TopicConfig(name, count, count, attributes={"message.type": "FIFO"}), 5)
        topics.persist()
        topics.remove("c", 6)
        topics.put(TopicConfig("a", 7, 7), 8)
    again = TopicConfigs(tmp_path)
    topics.persist()
    again.load()
    assert list(again) == list(topics)
    before = (tmp_path / "topics.json").read_bytes()
    again.persist()
    assert (tmp_path / "topics.json").read_bytes() == before
