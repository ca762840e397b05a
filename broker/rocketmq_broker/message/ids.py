"""Message ids: the one a client makes (UNIQ_KEY), and the one that says where a broker stored the message."""

import calendar
import socket
import struct
import threading
import time
from typing import NamedTuple

from rocketmq_broker.world import World

_HOST_AND_OFFSET = struct.Struct(">4sIq")


class MessageId(NamedTuple):
    """What an offset message id says: the broker's host (IPv4) and port, and the commit log offset."""

    host: str
    port: int
    commit_log_offset: int


def offset_message_id(store_host: bytes, commit_log_offset: int) -> str:
    """The 32 hexadecimal digits of host, port and offset (RocketMQ's MessageDecoder.createMessageId).

    `store_host` is 8 bytes, an IPv4 address and a port, as a record holds them; with IPv6 it is 20, and the id 56 digits.
    """
    return (store_host + commit_log_offset.to_bytes(8, "big", signed=True)).hex().upper()


def parse_offset_message_id(text: str) -> MessageId:
    """The parts of an offset message id. Raises ValueError if the text is none."""
    try:
        host, port, offset = _HOST_AND_OFFSET.unpack(bytes.fromhex(text))
    except (ValueError, struct.error):
        raise ValueError(f"{text!r} is no offset message id: 32 hexadecimal digits are expected") from None
    return MessageId(socket.inet_ntoa(host), port, offset)


class UniqueIdMaker:
    """Makes the ids that clients give their messages; one for a process is enough (RocketMQ's MessageClientIDSetter).

        IPv4 address 4 | process id 2 | maker 4 | ms since the month began 4 | counter 2

    Written as 32 hexadecimal digits. No two are equal unless one maker makes more than 65,536 within a millisecond: where the
    same milliseconds come again, because a month began, the clock was set back or the process forked, the maker's number is
    drawn anew. Safe to use from several threads.
    """

    def __init__(self, world: World, host: str = "127.0.0.1") -> None:
        """`host` is the IPv4 address others know this machine by."""
        self._host = socket.inet_aton(host)
        self._process_id_now, self._nonce = world.process_id, world.nonce
        self._counter = 0
        self._lock = threading.Lock()
        self._latest_ms = 0
        self._month_start_ms = 0
        self._process_id = 0
        self._prefix = ""

    def make(self, now_ms: int) -> str:
        """A fresh id for the time given, in milliseconds since the epoch."""
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
