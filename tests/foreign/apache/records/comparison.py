"""Makes the records of two brokers comparable. Values that differ between any two runs are replaced by names."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.message.record import Record, host_text
from rocketmq_broker.transaction.messages.half_message import RESUMED_FROM
from tests.foreign.apache.records.stage import Check, Reply, Stage, is_resumed, way_of
from tests.foreign.apache.records.ways import CHECK_MAX, DEAD_LETTERS, REPLIES, RETRY

HALF, OP = topics.HALF_TOPIC.encode(), topics.OP_HALF_TOPIC.encode()
SHARED_TOPICS = {
    name.encode() for name in (topics.HALF_TOPIC, topics.OP_HALF_TOPIC, topics.SCHEDULE_TOPIC, RETRY, DEAD_LETTERS, REPLIES)
}
"""Several ways meet there, in no certain order: the queue offset says nothing."""

Fields = Mapping[str, object]
"""Of a record, a check-back or a reply; properties are fields of their own."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between Apache's broker and this project's broker on one path of a message."""

    what: str
    """The record, check-back or reply."""
    field: str
    """Or `is there`."""
    apaches: object = None
    ours: object = None


def differences(apaches: Mapping[str, Fields], ours: Mapping[str, Fields]) -> Iterator[Difference]:
    """Yields the differences on one path of a message."""
    for what in sorted(apaches.keys() | ours.keys()):
        if what not in apaches or what not in ours:
            yield Difference(what, "is there", what in apaches, what in ours)
            continue
        for field in sorted(apaches[what].keys() | ours[what].keys()):
            if apaches[what].get(field) != ours[what].get(field):
                yield Difference(what, field, apaches[what].get(field), ours[what].get(field))


class Comparable:
    """The records, check-backs and replies of one broker, by path and name, in a form that allows a comparison."""

    def __init__(self, stage: Stage) -> None:
        self.ways: dict[str, dict[str, Fields]] = {}
        self._stage = stage
        self._store_host = ""
        self._names: dict[int, str] = {}
        self._half_messages: dict[int, Record] = {}
        self._counts: Counter[tuple[str, str]] = Counter()
        for record in stage.records():
            self._add(record)
        for way, checks in stage.checks.items():
            for number, check in enumerate(checks[:CHECK_MAX], 1):  # a resumed message may be asked about once more, or not
                self.ways[way][f"check-back {number}"] = self._check_fields(way, check)
        for way, replies in stage.replies.items():
            for number, reply in enumerate(replies, 1):
                self.ways[way][f"reply {number}"] = self._reply_fields(way, reply)

    def _add(self, record: Record) -> None:
        self._store_host = self._store_host or host_text(record.store_host)
        if record.topic == HALF:
            self._half_messages[record.queue_offset] = record
        half = self._half_messages[int(record.body)] if record.topic == OP else None
        way = way_of(half or record)
        name = self._name(way, record, half)
        self._names[record.commit_log_offset] = name
        self.ways.setdefault(way, {})[name] = self._fields(way, record, half)

    def _name(self, way: str, record: Record, half: Record | None) -> str:
        if half is not None:
            return f"op message of {self._names[half.commit_log_offset]}"
        kind = "resumed half message" if is_resumed(record) else _KINDS.get(record.topic, "delivered message")
        self._counts[way, kind] += 1
        number = self._counts[way, kind]
        return kind if number == 1 else f"{kind} {number}"

    def _fields(self, way: str, record: Record, half: Record | None) -> Fields:
        fields: dict[str, object] = {
            "topic": record.topic.decode(),
            "queueId": record.queue_id,
            "queueOffset": "some" if record.topic in SHARED_TOPICS else record.queue_offset,
            "flag": record.flag,
            "sysFlag": record.sys_flag,
            "bornTimestamp": self._born_timestamp(way, record.born_timestamp),
            "bornHost": self._host(host_text(record.born_host)),
            "storeHost": self._host(host_text(record.store_host)),
            "reconsumeTimes": record.reconsume_times,
            "preparedTransactionOffset": self._place(record.prepared_transaction_offset),
            "body": self._names[half.commit_log_offset] if half else record.body,
        }
        return fields | self._properties(record.properties)

    def _properties(self, encoded: bytes) -> dict[str, object]:
        return {f"property {name}": self._property(name, value) for name, value in props.decode(encoded).items()}

    def _property(self, name: str, value: str) -> str:
        if name == props.PUSH_REPLY_TIME:
            return "now"
        if name == props.ORIGIN_MESSAGE_ID:
            return self._offset_id(value)
        return self._place(int(value)) if name == RESUMED_FROM else value

    def _check_fields(self, way: str, check: Check) -> Fields:
        half = self._half_messages[check.header.tran_state_table_offset]
        header = {
            "tranStateTableOffset": self._names[half.commit_log_offset],
            "commitLogOffset": self._place(check.header.commit_log_offset),
            "offsetMsgId": self._offset_id(check.header.offset_msg_id or ""),
        }
        fields = {**msgspec.to_builtins(check.header), **header}
        return {f"header {name}": value for name, value in fields.items()} | {
            **self._fields(way, check.record, None),
            "queueOffset": self._names[self._half_messages[check.record.queue_offset].commit_log_offset],
        }

    def _reply_fields(self, way: str, reply: Reply) -> Fields:
        header = reply.header
        comparable = {
            "properties": "below",
            "bornTimestamp": self._born_timestamp(way, header.born_timestamp),
            "storeTimestamp": "now",
            "bornHost": self._host(header.born_host),
            "storeHost": self._host(header.store_host),
            "body": reply.body,
        }
        return {**msgspec.to_builtins(header), **comparable, **self._properties(header.properties.encode())}

    def _born_timestamp(self, way: str, timestamp: int) -> str:
        return "as sent" if timestamp == self._stage.born_ms.get(way) else "now"

    def _host(self, host: str) -> str:
        return "broker" if host == self._store_host else "client"

    def _place(self, commit_log_offset: int) -> str:
        return self._names.get(commit_log_offset, str(commit_log_offset)) if commit_log_offset else "none"

    def _offset_id(self, message_id: str) -> str:
        try:
            parsed = parse_offset_message_id(message_id)
        except ValueError:
            return message_id
        return f"offset id of {self._place(parsed.commit_log_offset)}"


_KINDS = {
    HALF: "half message",
    topics.SCHEDULE_TOPIC.encode(): "waiting message",
    topics.CHECK_MAX_TIME_TOPIC.encode(): "discarded message",
    RETRY.encode(): "redelivered message",
    DEAD_LETTERS.encode(): "dead letter",
}
