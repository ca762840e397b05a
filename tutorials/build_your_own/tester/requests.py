"""The requests that the stages send, in the form in which producers and consumers send them."""

import itertools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.frames import CODES, Frame, answer_name
from tutorials.build_your_own.tester.layout import Record, encode_properties, read_records, shown

COMMIT: Final = 8
ROLLBACK: Final = 12
UNKNOWN: Final = 0
DECISIONS: Final[Mapping[int, str]] = {COMMIT: "COMMIT", ROLLBACK: "ROLLBACK", UNKNOWN: "UNKNOWN"}
PRODUCERS: Final = "order_service"
CONSUMERS: Final = "credit_service"
BORN_TIMESTAMP: Final = 1_700_000_000_000
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
DISCARD_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"

PREPARED_BIT: Final = 4
_PULL_SUBSCRIPTION: Final = 4
_MAX_RECORDS: Final = 1000
"""The maximum number of records to pull. No stage sends that many."""
_fences = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Stored:
    """The broker's response to SEND_MESSAGE."""

    queue_id: int
    queue_offset: int
    msg_id: str
    commit_log_offset: int
    """The commit log offset of the message: the last 8 bytes of msgId."""


@dataclass(frozen=True, slots=True)
class Half:
    """A sent half message."""

    stored: Stored
    transaction_id: str
    group: str = PRODUCERS


@dataclass(frozen=True, slots=True)
class Pulled:
    """The result of a pull."""

    answer: Frame
    records: list[Record] = field(default_factory=list)


def send(
    connection: Connection,
    topic: str,
    body: bytes,
    *,
    queue_id: int = 0,
    properties: Mapping[str, str] | None = None,
    sys_flag: int = 0,
    group: str = PRODUCERS,
    flag: int = 0,
    born_timestamp: int | None = None,
    note: str = "",
) -> Stored:
    """Sends a message and returns the broker's response. Raises Failed if the broker refuses the message."""
    fields = send_fields(topic, queue_id, properties or {}, sys_flag, group, flag)
    fields["bornTimestamp"] = str(born_timestamp or int(time.time() * 1000))
    text = f"{shown(body)} to {topic}, queue {queue_id}{', ' if note else ''}{note}"
    answer = connection.request(CODES["SEND_MESSAGE"], fields, body, note=text)
    expect_code(answer, 0)
    return stored(answer)


def try_to_send(connection: Connection, topic: str, body: bytes, properties: Mapping[str, str]) -> Frame:
    """Sends a message that the broker should refuse, and returns the response. Raises Failed if no response arrives."""
    return connection.request(
        CODES["SEND_MESSAGE"],
        send_fields(topic, 0, properties),
        body,
        note=f"{shown(body)} to the reserved topic {topic}",
    )


def send_fields(
    topic: str, queue_id: int, properties: Mapping[str, str], sys_flag: int = 0, group: str = PRODUCERS, flag: int = 0
) -> dict[str, str]:
    """Returns the extFields of SEND_MESSAGE."""
    return {
        "producerGroup": group,
        "topic": topic,
        "defaultTopic": "TBW102",
        "defaultTopicQueueNums": "4",
        "queueId": str(queue_id),
        "sysFlag": str(sys_flag),
        "bornTimestamp": str(BORN_TIMESTAMP),
        "flag": str(flag),
        "properties": encode_properties(properties),
        "reconsumeTimes": "0",
        "unitMode": "false",
        "batch": "false",
    }


def half_properties(transaction_id: str, group: str = PRODUCERS) -> dict[str, str]:
    """Returns the properties of a half message."""
    return {"UNIQ_KEY": transaction_id, "TRAN_MSG": "true", "PGROUP": group, "KEYS": "order-1", "TAGS": "created"}


def send_half(
    connection: Connection, topic: str, body: bytes, transaction_id: str, *, queue_id: int = 0, group: str = PRODUCERS
) -> Half:
    """Sends a half message and returns it with its position. Raises Failed if the broker refuses it."""
    properties = half_properties(transaction_id, group)
    answer = send(
        connection, topic, body,
        queue_id=queue_id, properties=properties, sys_flag=PREPARED_BIT, group=group, note="half message (TRAN_MSG=true)",
    )  # fmt: skip
    return Half(answer, transaction_id, group)


def end_transaction(connection: Connection, half: Half, decision: int, **changed: str) -> Frame:
    """Sends a decision and returns the response.

    `changed` replaces fields of the request. Raises Failed if no response arrives.
    """
    fields = decision_fields(half, decision) | changed
    return connection.request(CODES["END_TRANSACTION"], fields, note=_decided(fields, decision))


def end_transaction_oneway(connection: Connection, half: Half, decision: int) -> None:
    """Sends a decision as a one-way request, as producers do."""
    fields = decision_fields(half, decision)
    connection.oneway(CODES["END_TRANSACTION"], fields, note=_decided(fields, decision))


def answer_check(connection: Connection, check: Frame, decision: int, group: str = PRODUCERS) -> None:
    """Sends a decision in response to a check-back."""
    fields = {
        "producerGroup": group,
        "tranStateTableOffset": check.field("tranStateTableOffset"),
        "commitLogOffset": check.field("commitLogOffset"),
        "commitOrRollback": str(decision),
        "fromTransactionCheck": "true",
        "msgId": check.fields.get("msgId", ""),
        "transactionId": check.fields.get("transactionId", ""),
    }
    connection.oneway(CODES["END_TRANSACTION"], fields, note=f"{_decided(fields, decision)}, the answer to the check-back")


def decision_fields(half: Half, decision: int) -> dict[str, str]:
    """Returns the extFields of END_TRANSACTION."""
    return {
        "producerGroup": half.group,
        "tranStateTableOffset": str(half.stored.queue_offset),
        "commitLogOffset": str(half.stored.commit_log_offset),
        "commitOrRollback": str(decision),
        "fromTransactionCheck": "false",
        "msgId": half.transaction_id,
        "transactionId": half.transaction_id,
    }


def heart_beat(connection: Connection, group: str = PRODUCERS) -> Frame:
    """Registers a producer of the group on this connection. Raises Failed unless the response code is 0."""
    answer = connection.request(CODES["HEART_BEAT"], {}, heart_beat_body(group), note=f"producer group {group}")
    expect_code(answer, 0)
    return answer


def heart_beat_body(group: str) -> bytes:
    """Returns the body of HEART_BEAT."""
    body = {"clientID": f"127.0.0.1@{group}", "consumerDataSet": [], "producerDataSet": [{"groupName": group}]}
    return json.dumps(body, separators=(",", ":")).encode()


def pull(
    connection: Connection, topic: str, offset: int, *, queue_id: int = 0, max_messages: int = 32, subscription: str = "*"
) -> Pulled:
    """Pulls once and returns the response with its records. Raises Failed if the body is not a sequence of records."""
    fields = pull_fields(topic, offset, queue_id, max_messages, subscription)
    tags = f", tags {subscription}" if subscription != "*" else ""
    note = f"{topic}, queue {queue_id}, from offset {offset}, at most {max_messages}{tags}"
    answer = connection.request(CODES["PULL_MESSAGE"], fields, note=note)
    records = read_records(answer.body, "the body of the answer to PULL_MESSAGE") if answer.code == 0 else []
    return Pulled(answer, records)


def pull_fields(topic: str, offset: int, queue_id: int, max_messages: int, subscription: str = "*") -> dict[str, str]:
    """Returns the extFields of PULL_MESSAGE."""
    return {
        "consumerGroup": CONSUMERS,
        "topic": topic,
        "queueId": str(queue_id),
        "queueOffset": str(offset),
        "maxMsgNums": str(max_messages),
        "sysFlag": str(_PULL_SUBSCRIPTION),
        "commitOffset": "0",
        "suspendTimeoutMillis": "0",
        "subscription": subscription,
        "subVersion": "0",
        "expressionType": "TAG",
    }


def pull_all(connection: Connection, topic: str, *, queue_id: int = 0) -> list[Record]:
    """Returns all records of a queue that are visible to consumers. Raises Failed if a pull fails."""
    records: list[Record] = []
    while (pulled := pull(connection, topic, len(records), queue_id=queue_id)).records:
        records += pulled.records
        if len(records) > _MAX_RECORDS:
            raise Failed(
                f"pulls that reach the end of {topic}, queue {queue_id}", f"{len(records)} records, and more with each pull"
            )
    return records


def pull_until(connection: Connection, topic: str, body: bytes, patience_s: float, *, queue_id: int = 0) -> list[Record]:
    """Pulls from a queue until a record with this body appears. Returns all records up to and including it.

    Raises Failed if the record does not appear within `patience_s` seconds.
    """
    deadline = time.monotonic() + patience_s
    while True:
        records = pull_all(connection, topic, queue_id=queue_id)
        bodies = [record.body for record in records]
        if body in bodies:
            return records[: bodies.index(body) + 1]
        if time.monotonic() > deadline:
            raise Failed(
                f"{shown(body)} in {topic}, queue {queue_id}, within {patience_s:g} s",
                f"{', '.join(map(shown, bodies)) or 'no message'}",
            )
        time.sleep(0.02)


def fence(connection: Connection, topic: str, patience_s: float, *, queue_id: int = 0) -> list[Record]:
    """Sends a plain message, and returns the records that are visible in its queue before it.

    All acknowledged records precede this message in the log, and the broker builds queues in the order of the log. The records
    are therefore complete without an arbitrary wait. Raises Failed if the message does not appear within `patience_s` seconds.
    """
    body = b"fence %d" % next(_fences)
    send(connection, topic, body, queue_id=queue_id, note="a plain message that marks the end")
    records = pull_until(connection, topic, body, patience_s, queue_id=queue_id)[:-1]
    return [record for record in records if not record.body.startswith(b"fence ")]


def stored(answer: Frame) -> Stored:
    """Parses the response to SEND_MESSAGE. Raises Failed if the broker refused the message."""
    msg_id = answer.field("msgId")
    try:
        parts = bytes.fromhex(msg_id)
    except ValueError:
        parts = b""
    if len(parts) != 16:
        raise Failed("a msgId of 32 hexadecimal digits: address (4 bytes), port (4), commit log offset (8)", f'"{msg_id}"')
    return Stored(answer.number("queueId"), answer.number("queueOffset"), msg_id, int.from_bytes(parts[8:]))


def expect_code(answer: Frame, code: int, what: str = "") -> None:
    """Raises Failed unless the response has this code. `what` describes the request."""
    if answer.code != code:
        remark = f' with remark "{answer.remark}"' if answer.remark else ""
        raise Failed(f"answer code {answer_name(code)}{' ' if what else ''}{what}", f"code {answer_name(answer.code)}{remark}")


def _decided(fields: Mapping[str, str], decision: int) -> str:
    name = DECISIONS.get(decision, str(decision))
    return f"{name} for the half message at {fields['commitLogOffset']}, queue offset {fields['tranStateTableOffset']}"
