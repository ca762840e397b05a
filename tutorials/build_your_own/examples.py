"""The byte examples of frames and records in the stages' texts.

`python -m tutorials.build_your_own.examples` updates the texts.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tutorials.build_your_own.curriculum import STAGES
from tutorials.build_your_own.solution import check_back, consume_queue, frames, record, requests, transactions
from tutorials.build_your_own.solution.consume_queue import Unit
from tutorials.build_your_own.solution.frames import Command
from tutorials.build_your_own.solution.record import Message, Record
from tutorials.build_your_own.solution.transactions import Pending
from tutorials.build_your_own.tester.frames import CODES, encode_request
from tutorials.build_your_own.tester.hex_dump import frame_lines, record_lines
from tutorials.build_your_own.tester.layout import UNIT, cut, read_record
from tutorials.build_your_own.tester.requests import (
    BORN_TIMESTAMP,
    COMMIT,
    PREPARED_BIT,
    PRODUCERS,
    Half,
    Stored,
    decision_fields,
    half_properties,
    heart_beat_body,
    pull_fields,
    send_fields,
)

BLOCK: Final = re.compile(r"(<!-- bytes: (\w+) -->\n```text\n)(.*?)(```)", re.DOTALL)

_TOPIC: Final = "orders"
_BROKER: Final = record.host_bytes("127.0.0.1", 10911)
_CLIENT: Final = record.host_bytes("127.0.0.1", 50123)
_STORE_TIMESTAMP: Final = BORN_TIMESTAMP + 3
_PLAIN: Final = Record(
    Message(_TOPIC, 2, b"an order", {"TAGS": "created"}, born_timestamp=BORN_TIMESTAMP, born_host=_CLIENT),
    queue_offset=0,
    commit_log_offset=0,
    store_timestamp=_STORE_TIMESTAMP,
    store_host=_BROKER,
)
_TRANSACTION_ID: Final = "7F000001ABCD"
_HALF_PROPERTIES: Final = {**half_properties(_TRANSACTION_ID), "REAL_TOPIC": _TOPIC, "REAL_QID": "2"}
_HALF: Final = replace(
    _PLAIN,
    message=replace(_PLAIN.message, topic=transactions.HALF_TOPIC, queue_id=0, properties=_HALF_PROPERTIES),
    commit_log_offset=len(record.encode(_PLAIN)),
)
_COMMITTED: Final = replace(
    _HALF, message=transactions.committed(_HALF), commit_log_offset=_HALF.commit_log_offset + len(record.encode(_HALF))
)
_OP: Final = replace(
    _HALF,
    message=replace(transactions.op_message(_HALF), born_timestamp=BORN_TIMESTAMP),
    commit_log_offset=_COMMITTED.commit_log_offset + len(record.encode(_COMMITTED)),
)


def examples() -> Mapping[str, list[str]]:
    """Returns the lines of each example, keyed by the name of the example."""
    heart_beat = encode_request(CODES["HEART_BEAT"], 7, {}, heart_beat_body(PRODUCERS))
    send = encode_request(CODES["SEND_MESSAGE"], 8, send_fields(_TOPIC, 2, {"TAGS": "created"}), b"an order")
    half = encode_request(
        CODES["SEND_MESSAGE"], 9, send_fields(_TOPIC, 2, half_properties(_TRANSACTION_ID), PREPARED_BIT), b"an order"
    )
    pull = encode_request(CODES["PULL_MESSAGE"], 10, pull_fields(_TOPIC, 0, 2, 32))
    end = decision_fields(Half(Stored(2, 0, "", _HALF.commit_log_offset), _TRANSACTION_ID), COMMIT)
    return {
        "heart_beat": list(frame_lines(heart_beat)),
        "heart_beat_answer": _answer(7),
        "send": list(frame_lines(send)),
        "send_answer": _answer(8, requests.place_of(_PLAIN, 2)),
        "pull": list(frame_lines(pull)),
        "pull_answer": _answer(
            10,
            {"suggestWhichBrokerId": "0", "nextBeginOffset": "1", "minOffset": "0", "maxOffset": "1"},
            record.encode(_PLAIN),
        ),
        "record": _record(_PLAIN),
        "unit": _unit(),
        "half": list(frame_lines(half)),
        "half_record": _record(_HALF),
        "end_transaction": list(frame_lines(encode_request(CODES["END_TRANSACTION"], 11, end, oneway=True))),
        "committed_record": _record(_COMMITTED),
        "op_record": _record(_OP),
        "check": list(frame_lines(check_back.check_request(Pending(_HALF, due_s=0, checks=1)))),
    }


def with_examples(text: str) -> str:
    """Returns the text with updated examples. Raises KeyError for an unknown example."""
    known = examples()
    return BLOCK.sub(lambda block: block[1] + "".join(f"{line}".rstrip() + "\n" for line in known[block[2]]) + block[4], text)


def _answer(opaque: int, fields: Mapping[str, str] | None = None, body: bytes = b"") -> list[str]:
    return list(frame_lines(frames.encode(Command(0, opaque, frames.RESPONSE_FLAG, fields or {}, body))))


def _record(shown: Record) -> list[str]:
    return list(record_lines(read_record(record.encode(shown), 0, "the example")))


def _unit() -> list[str]:
    unit = consume_queue.encode(Unit(0, len(record.encode(_PLAIN)), consume_queue.tags_code("created")))
    return [*_unit_lines(unit)]


def _unit_lines(unit: bytes) -> Iterator[str]:
    for field in cut(UNIT, unit):
        yield f"{field.at:>5}  {field.data.hex(' '):<26}{field.name}: {field.number}"


if __name__ == "__main__":
    for stage in STAGES:
        stage.text.write_text(with_examples(stage.text.read_text()))
