"""Values for fields and bodies: plausible values, and edge cases that developers forget."""

# ruff: noqa: E501

import json
import random
import zlib
from typing import Any

from rocketmq_broker.message import properties as props
from rocketmq_broker.message.record import encode_record, host_bytes

TOPICS = (
    "orders", "half", "%RETRY%credits", "%DLQ%credits", "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC", "SCHEDULE_TOPIC_XXXX", "TBW102", "rmq_sys_PARKED_MARK_TOPIC", "nowhere", "OFFSET_MOVED_EVENT", "broker-a",
)  # fmt: skip
GROUPS = ("credits", "orders", "CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER", "CLIENT_INNER_PRODUCER", "stranger", "%RETRY%x")
ODD_TEXTS = (
    "", " ", "\0", "a\nb", "\x1b[2J", "\u202e", "é" * 64, "x" * 127, "x" * 128, "x" * 255, "x" * 70_000, "../../etc", "/", "%s%n", "null",
    "NaN", "-0", "1e400", "9" * 400, "٣", "true", "\x01", "\x02", "a\x01b\x02", "${x}", "{}", "[]", '"', "\\", "||", "* || *", "a=1 OR", "(" * 500,
)  # fmt: skip
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 12, 16, 18, 32, 255, 1000, 65_535, 65_536)
ODD_NUMBERS = (-1, -2, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**62, 2**63 - 1, 2**63, -(2**63), 10**30)


class Values:
    """A generator of values. All randomness comes from one random generator, so a run can be repeated."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.transactions: list[tuple[str, int, int]] = []
        """Id, half queue offset and commit log offset of half messages that were stored."""

    def text(self, name: str) -> str:
        """Returns a text for a field of that name."""
        low = name.lower()
        if self.chance.random() < 0.12:
            return self.odd_text()
        if "properties" in low:
            return self.properties()
        if "topic" in low:
            return self.chance.choice(TOPICS)
        if "group" in low:
            return self.chance.choice(GROUPS)
        if "addr" in low:
            return self.chance.choice(("127.0.0.1:10911", "10.0.0.9:1", "[::1]:9", "nowhere", "127.0.0.1:99999"))
        if "subscription" in low or "expression" in low:
            return self.chance.choice(("*", "a || b", "a > 5 AND b IS NOT NULL", "TAG", "SQL92", "a ||"))
        if "id" in low:
            return (self.transactions and self.chance.choice(self.transactions)[0]) or "7F00000100002A9F0000000000000000"
        return self.chance.choice(("key-1", "a", "broker-a", "DefaultCluster", "orders", "r"))

    def odd_text(self) -> str:
        """Returns an unusual text."""
        if self.chance.random() < 0.3:
            return "".join(chr(self.chance.choice((self.chance.randrange(128), self.chance.randrange(0xD800)))) for _ in range(8))
        return self.chance.choice(ODD_TEXTS)

    def number(self, name: str) -> int:
        """Returns a number for a field of that name."""
        low = name.lower()
        if self.chance.random() < 0.12:
            return self.chance.choice(ODD_NUMBERS)
        if self.transactions and "offset" in low and self.chance.random() < 0.5:
            _, half, commit_log = self.chance.choice(self.transactions)
            return commit_log if "commit" in low else half
        if "queueid" in low:
            return self.chance.randrange(5)
        if "timeout" in low or "suspend" in low:
            return self.chance.choice((0, 1, 1000))
        return self.chance.choice(NUMBERS)

    def properties(self) -> str:
        """Returns encoded properties, including some that only a broker may write."""
        names = (
            "TRAN_MSG", "PGROUP", "UNIQ_KEY", "KEYS", "TAGS", "DELAY", "REAL_TOPIC", "REAL_QID", "WAIT", "CLUSTER", "CHECK_IMMUNITY_TIME_IN_SECONDS",
            "TRANSACTION_CHECK_TIMES", "PREPAREDTRANSACTIONOFFSET", "TRAN_PREPARED_QUEUE_OFFSET", "RETRY_TOPIC", "REPLY_TO_CLIENT", "CORRELATION_ID", "INSTANCE_ID", "a",
        )  # fmt: skip
        pairs = []
        for _ in range(self.chance.randrange(6)):
            name = self.chance.choice(names)
            value = self.chance.choice(("true", "1", "3", "orders", "credits", "key-1", f"T{self.chance.randrange(50)}"))
            pairs.append((name, self.odd_text() if self.chance.random() < 0.1 else value))
        return "".join(f"{name}\x01{value}\x02" for name, value in pairs)

    def json(self, depth: int = 0) -> Any:
        """Returns any JSON value."""
        draw = self.chance.random()
        if depth > 3 or draw < 0.5:
            return self.chance.choice((None, True, 0, -1, 2**63, 1.5, "", "x", self.odd_text(), self.chance.choice(ODD_NUMBERS)))
        if draw < 0.75:
            return [self.json(depth + 1) for _ in range(self.chance.randrange(4))]
        return {self.text("key"): self.json(depth + 1) for _ in range(self.chance.randrange(4))}

    def record(self) -> bytes:
        """Returns a commit log record. Its body is sometimes compressed, and is sometimes a decompression bomb."""
        body, sys_flag = self.chance.randbytes(self.chance.randrange(200)), 0
        if self.chance.random() < 0.3:
            sys_flag = self.chance.choice((1, 1 | 0x300, 1 | 0x100, 1 | 0x700))
            body = zlib.compress(
                bytes(self.chance.choice((10, 1000, 300_000, 40_000_000)) if self.chance.random() < 0.02 else 500)
            )
            body = self.bytes(body) if self.chance.random() < 0.3 else body
        host = host_bytes("127.0.0.1", 1)
        record = encode_record(
            topic=self.chance.choice(TOPICS).encode(), queue_id=self.chance.randrange(4), queue_offset=self.chance.randrange(100),
            commit_log_offset=self.chance.randrange(10_000), flag=0, sys_flag=sys_flag, born_timestamp=1, born_host=host, store_timestamp=2,
            store_host=host, reconsume_times=0, prepared_transaction_offset=0, body=body,
            properties=props.encode({"UNIQ_KEY": f"T{self.chance.randrange(50)}", "PGROUP": "orders"}),
        )  # fmt: skip
        return self.bytes(record) if self.chance.random() < 0.2 else record

    def bytes(self, data: bytes) -> bytes:
        """Returns the bytes with damage: flipped, cut, doubled, or with wrong lengths."""
        if not data:
            return self.chance.randbytes(self.chance.randrange(9))
        at = self.chance.randrange(len(data))
        damage = self.chance.randrange(6)
        if damage == 0:
            return data[:at]
        if damage == 1:
            return data[:at] + bytes([self.chance.randrange(256)]) + data[at + 1 :]
        if damage == 2:
            return data[:at] + self.chance.choice((b"\xff" * 4, b"\0" * 4, b"\x7f\xff\xff\xff", b"\x80\0\0\0")) + data[at + 4 :]
        if damage == 3:
            return data[:at] + self.chance.randbytes(self.chance.randrange(1, 9)) + data[at:]
        if damage == 4:
            end = self.chance.randrange(at, len(data))
            return data[:end] + data[at:]
        return data[at:]

    def json_bytes(self, value: Any) -> bytes:
        """Returns a value as JSON, with some members changed, dropped or given another type."""
        return json.dumps(self.changed(value)).encode()

    def changed(self, value: Any) -> Any:
        """Returns the value with small changes."""
        if self.chance.random() < 0.04:
            return self.json()
        if isinstance(value, dict):
            return {
                (self.odd_text() if self.chance.random() < 0.01 else name): self.changed(member)
                for name, member in value.items()
                if self.chance.random() > 0.03
            }
        if isinstance(value, list):
            copies = 1 if self.chance.random() > 0.02 else self.chance.choice((0, 2, 300))
            return [self.changed(member) for member in value] * copies
        return value
