"""Message ids: the client's id (UNIQ_KEY), and the offset message id, which contains the position in the commit log."""

import calendar
import socket
import struct
import threading
import time
from typing import NamedTuple

from librt.strings import BytesWriter, write_i64_be

from rocketmq_broker.world import World

_HOST_AND_OFFSET = struct.Struct(">4sIq")


class MessageId(NamedTuple):
    """The content of an offset message id: the broker's IPv4 address and port, and the commit log offset."""

    host: str
    port: int
    commit_log_offset: int


def offset_message_id(store_host: bytes, commit_log_offset: int) -> str:
    """Returns an offset message id: host, port and offset in hexadecimal digits (RocketMQ's MessageDecoder.createMessageId).

    `store_host` is encoded as in a record. 8 bytes for IPv4 give 32 digits, and 20 bytes for IPv6 give 56 digits.
    """
    writer = BytesWriter()
    writer.write(store_host)
    write_i64_be(writer, commit_log_offset)
    return writer.getvalue().hex().upper()


def parse_offset_message_id(text: str) -> MessageId:
    """Parses an offset message id with an IPv4 address. Raises ValueError if the text is invalid."""
    try:
        host, port, offset = _HOST_AND_OFFSET.unpack(bytes.fromhex(text))
    except (ValueError, struct.error):
        raise ValueError(f"offset message id must be 32 hexadecimal digits, not {text!r}") from None
    return MessageId(socket.inet_ntoa(host), port, offset)


class UniqueIdMaker:
    """Generates the message ids of a client (RocketMQ's MessageClientIDSetter). Thread-safe.

        IPv4 address 4 | process id 2 | nonce 4 | milliseconds since the start of the month 4 | counter 2

    An id is written as 32 hexadecimal digits. Ids are unique unless one generator makes more than 65,536 in a millisecond. The
    generator draws a new nonce when the milliseconds may repeat: in a new month, after the clock is set back, and in a forked
    process.
    """

    def __init__(self, world: World, host: str = "127.0.0.1") -> None:
        """`world` provides the process id and the nonces. `host` is the IPv4 address of this machine."""
        self._host = socket.inet_aton(host)
        self._process_id_now, self._nonce = world.process_id, world.nonce
        self._counter = 0
        self._lock = threading.Lock()
        self._latest_ms = 0
        self._month_start_ms = 0
        self._process_id = 0
        self._prefix = ""

    def make(self, now_ms: int) -> str:
        """Returns a new id for the time `now_ms`, in milliseconds since the epoch."""
        month_start_ms = _month_start_ms(now_ms)
        process_id = self._process_id_now()
        with self._lock:
            if now_ms < self._latest_ms or month_start_ms != self._month_start_ms or process_id != self._process_id:
                self._month_start_ms, self._process_id = month_start_ms, process_id
                self._prefix = struct.pack(">4sH4s", self._host, process_id & 0xFFFF, self._nonce(4)).hex().upper()
            self._latest_ms = now_ms
            count = self._counter
            self._counter = (count + 1) & 0xFFFF
            return f"{self._prefix}{(now_ms - month_start_ms) & 0xFFFFFFFF:08X}{count:04X}"


def _month_start_ms(now_ms: int) -> int:
    now = time.gmtime(now_ms // 1000)
    return calendar.timegm((now.tm_year, now.tm_mon, 1, 0, 0, 0)) * 1000
