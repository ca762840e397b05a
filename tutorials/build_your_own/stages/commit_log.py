"""Stage 4: the commit log is one file with all records, in RocketMQ's format."""

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

from tutorials.build_your_own.tester.connection import Connection
from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.layout import MAGIC, Record
from tutorials.build_your_own.tester.requests import BORN_TIMESTAMP, Stored, send
from tutorials.build_your_own.tester.trial import Trial, check

_OURS = "broker/rocketmq_broker/message/record.py"
_APACHE = "CommitLog.DefaultAppendMessageCallback"
_CLOCK_SLACK_MS = 5_000


@dataclass(frozen=True, slots=True)
class Sent:
    """A sent message and the broker's response."""

    topic: str
    queue_id: int
    body: bytes
    flag: int
    properties: Mapping[str, str]
    stored: Stored


def play(trial: Trial) -> None:
    """Runs the checks of this stage. Raises ClaimFailed if a check fails."""
    trial.start()
    connection = trial.connect()
    began_ms = time.time() * 1000
    sent = [
        _send(connection, "orders", 1, b"an order", 7, {"TAGS": "created", "KEYS": "order-1"}),
        _send(connection, "orders", 1, _with_high_crc(), 0, {}),
        _send(connection, "payments", 0, b"", 0, {"colour": "größer"}),
    ]
    ended_ms = time.time() * 1000
    records = _has_a_record_for_each(trial, sent)
    _fields_are_right(trial, connection, sent, records)
    _knows_the_time(trial, records, began_ms, ended_ms)


def _send(connection: Connection, topic: str, queue_id: int, body: bytes, flag: int, properties: Mapping[str, str]) -> Sent:
    stored = send(connection, topic, body, queue_id=queue_id, properties=properties, flag=flag, born_timestamp=BORN_TIMESTAMP)
    return Sent(topic, queue_id, body, flag, properties, stored)


def _with_high_crc() -> bytes:
    """Returns a body whose CRC-32 has its highest bit set. A record stores the CRC-32 without this bit."""
    return next(body for body in (b"a paid order %d" % number for number in range(100)) if zlib.crc32(body) >> 31)


def _has_a_record_for_each(trial: Trial, sent: list[Sent]) -> list[Record]:
    with trial.claim(
        "When a send is answered, commitlog/00000000000000000000 has its record, and records lie one behind the other",
        hint="Write, and with flushDiskType=SYNC_FLUSH sync, before you answer: what is acknowledged survives a power cut. "
        "A file may be longer than its records; then zeros follow.",
        ours="broker/rocketmq_broker/store/log/commit_log.py",
        apache=_APACHE,
    ):
        records = trial.files.records()
        if len(records) != len(sent):
            raise Failed(f"{len(sent)} records, one for each sent message", f"{len(records)} records")
        at = 0
        for number, (message, record) in enumerate(zip(sent, records, strict=True)):
            check(
                message.stored.commit_log_offset == at,
                f"record {number} where its msgId says: at byte {message.stored.commit_log_offset}",
                f"at byte {at}",
            )
            at += record.size
        return records


def _fields_are_right(trial: Trial, connection: Connection, sent: list[Sent], records: list[Record]) -> None:
    with trial.claim(
        "Each field of a record is RocketMQ's",
        hint="All numbers are big-endian. BODYCRC is the CRC-32 of the body without its highest bit. A host is 4 bytes of "
        "address and 4 of port.",
        ours=_OURS,
        apache=_APACHE,
    ):
        for message, record in zip(sent, records, strict=True):
            fields = record.compare(_wanted(trial, connection, message, record))
            if wrong := [field.name for field in fields if not field.is_right]:
                place = f"commitlog/{'0' * 20}, the record at byte {message.stored.commit_log_offset}"
                raise Failed("the record of the sent message", f"another {', '.join(wrong)}", fields=fields, place=place)
            for name, value in message.properties.items():
                found = record.properties.get(name)
                check(found == value, f"property {name}={value}", f"{name}={found}; the properties are {dict(record.properties)}")


def _wanted(trial: Trial, connection: Connection, sent: Sent, record: Record) -> dict[str, bytes]:
    return {
        "TOTALSIZE": record.size.to_bytes(4),
        "MAGICCODE": MAGIC.to_bytes(4),
        "BODYCRC": (zlib.crc32(sent.body) & 0x7FFFFFFF).to_bytes(4),
        "QUEUEID": sent.queue_id.to_bytes(4),
        "FLAG": sent.flag.to_bytes(4),
        "QUEUEOFFSET": sent.stored.queue_offset.to_bytes(8),
        "PHYSICALOFFSET": sent.stored.commit_log_offset.to_bytes(8),
        "SYSFLAG": bytes(4),
        "BORNTIMESTAMP": BORN_TIMESTAMP.to_bytes(8),
        "BORNHOST": bytes([127, 0, 0, 1]) + connection.address[1].to_bytes(4),
        "STOREHOST": bytes([127, 0, 0, 1]) + trial.broker.port.to_bytes(4),
        "RECONSUMETIMES": bytes(4),
        "PREPAREDTRANSACTIONOFFSET": bytes(8),
        "BODYLENGTH": len(sent.body).to_bytes(4),
        "body": sent.body,
        "TOPICLENGTH": len(sent.topic).to_bytes(1),
        "topic": sent.topic.encode(),
    }


def _knows_the_time(trial: Trial, records: list[Record], began_ms: float, ended_ms: float) -> None:
    with trial.claim(
        "STORETIMESTAMP is the time of the broker's clock, in milliseconds since 1970",
        hint="The value looks like seconds or microseconds.",
        ours="broker/rocketmq_broker/store/message_store.py",
        apache="CommitLog.asyncPutMessage",
    ):
        for record in records:
            stored_ms = record.number("STORETIMESTAMP")
            is_now = began_ms - _CLOCK_SLACK_MS <= stored_ms <= ended_ms + _CLOCK_SLACK_MS
            check(is_now, f"between {began_ms:.0f} and {ended_ms:.0f}, when the messages were sent", str(stored_ms))
