"""Message ids: the client's (UNIQ_KEY), and the offset message id, which names the place in a broker's store."""

import calendar
import socket
import struct
import threading
import time
from typing import NamedTuple

from rocketmq_broker.world import World

_HOST_AND_OFFSET = struct.Struct(">4sIq")


class MessageId(NamedTuple):
    """The content of an offset message id: the broker's host (IPv4) and port, and the commit log offset."""

    host: str
    port: int
    commit_log_offset: int


def offset_message_id(store_host: bytes, commit_log_offset: int) -> str:
    """Returns the 32 hexadecimal digits of host, port and offset (RocketMQ's MessageDecoder.createMessageId).

    `store_host` is 8 bytes, an IPv4 address and a port, as a record holds them; with IPv6 it is 20, and the id 56 digits.
    """
    return (store_host + commit_log_offset.to_bytes(8, "big", signed=True)).hex().upper()


def parse_offset_message_id(text: str) -> MessageId:
    """Parses an offset message id. Raises ValueError if the text is none."""
    try:
        host, port, offset = _HOST_AND_OFFSET.unpack(bytes.fromhex(text))
    except (ValueError, struct.error):
        raise ValueError(f"{text!r} is no offset message id: 32 hexadecimal digits are expected") from None
    return MessageId(socket.inet_ntoa(host), port, offset)


class UniqueIdMaker:
    """A maker of the ids that clients give their messages; a process needs one (RocketMQ's MessageClientIDSetter).

        IPv4 address 4 | process id 2 | maker 4 | ms since the month began 4 | counter 2

    An id is written as 32 hexadecimal digits. Ids are unique unless one maker makes more than 65,536 within a millisecond. When
    the same milliseconds can come again (a new month, a clock set back, a fork), the maker draws a new number for itself.
    Safe to use from several threads.
    """

    def __init__(self, world: World, host: str = "127.0.0.1") -> None:
        """`host` is the IPv4 address by which others reach this machine."""
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
