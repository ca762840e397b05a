"""A TCP connection to the broker under test. It records all sent and received frames in the timeline."""

import itertools
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tutorials.build_your_own.tester.failed import Failed
from tutorials.build_your_own.tester.frames import (
    Frame,
    answer_name,
    decode_frame,
    encode_request,
    frame_length,
    request_name,
)
from tutorials.build_your_own.tester.layout import Record, read_records, shown
from tutorials.build_your_own.tester.timeline import Kind, Timeline

_SLICE_S: Final = 0.1
_MAX_NAMED: Final = 6
"""The maximum number of records that the timeline lists for a body."""


class Connection:
    """A TCP connection that sends requests and waits for frames up to a time limit."""

    def __init__(self, name: str, port: int, timeline: Timeline, patience_s: float, refuse_dead: Callable[[], None]) -> None:
        """Connects to the port. `patience_s` is the default time limit in seconds for a frame.

        `refuse_dead` raises Failed if the process of the broker has ended, so that no call waits for a dead broker.
        """
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.name = name
        self._port = port
        self.address: tuple[str, int] = self._socket.getsockname()[:2]
        self._timeline = timeline
        self._patience_s = patience_s
        self._refuse_dead = refuse_dead
        self._opaques = itertools.count(1)
        self._received = bytearray()
        self._is_over = False
        self.inbox: list[Frame] = []
        """The received frames that `take` has not returned yet."""

    @property
    def prefix(self) -> str:
        """The connection's name in brackets for the timeline, or "" if the connection has no name."""
        return f"[{self.name}] " if self.name else ""

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def request(self, code: int, fields: Mapping[str, str], body: bytes = b"", *, note: str = "") -> Frame:
        """Sends a request and returns the response. Raises Failed if no response arrives in time."""
        opaque = next(self._opaques)
        name = f"{request_name(code)}, opaque {opaque}"
        self.send_bytes(encode_request(code, opaque, fields, body), f"{name}{': ' if note else ''}{note}")
        return self.take(lambda frame: frame.is_answer and frame.opaque == opaque, f"an answer to {name}")

    def oneway(self, code: int, fields: Mapping[str, str], body: bytes = b"", *, note: str = "") -> int:
        """Sends a one-way request and returns its opaque."""
        opaque = next(self._opaques)
        name = f"{request_name(code)}, opaque {opaque}, one-way"
        self.send_bytes(encode_request(code, opaque, fields, body, oneway=True), f"{name}{': ' if note else ''}{note}")
        return opaque

    def next_opaque(self) -> int:
        """Returns a new opaque for a request that the caller encodes."""
        return next(self._opaques)

    def send_bytes(self, data: bytes, text: str) -> None:
        """Sends bytes unchanged. Raises Failed if the broker has closed the connection."""
        self._timeline.add(Kind.SENT, self.prefix + text, data)
        try:
            self._socket.sendall(data)
        except OSError as error:
            self._refuse_dead()
            raise Failed("an open connection", f"your broker closed the connection ({error.strerror or error})") from None

    def take(self, is_it: Callable[[Frame], bool], waiting_for: str, *, patience_s: float | None = None) -> Frame:
        """Returns the next frame for which `is_it` returns True. Other frames stay in the inbox.

        Raises Failed if no such frame arrives in time. `waiting_for` describes the frame.
        """
        patience_s = self._patience_s if patience_s is None else patience_s
        deadline = time.monotonic() + patience_s
        while True:
            for frame in self.inbox:
                if is_it(frame):
                    self.inbox.remove(frame)
                    return frame
            if time.monotonic() > deadline:
                raise self._nothing_came(waiting_for, patience_s)
            self._read_some(waiting_for)

    def forget(self, is_it: Callable[[Frame], bool]) -> None:
        """Removes the frames for which `is_it` returns True from the inbox."""
        self.inbox[:] = [frame for frame in self.inbox if not is_it(frame)]

    def take_none_until(self, is_bad: Callable[[Frame], bool], is_over: Callable[[], bool], wanted: str) -> None:
        """Waits until `is_over` returns True.

        Raises Failed if a frame for which `is_bad` returns True arrives first, or if neither happens in time.
        """
        deadline = time.monotonic() + self._patience_s
        is_last_look = False
        while True:
            self.poll()
            if bad := [frame for frame in self.inbox if is_bad(frame)]:
                raise Failed(wanted, f"one more: {frame_text(bad[0])}")
            if is_last_look:
                return
            if time.monotonic() > deadline:
                raise Failed(wanted, f"neither a check-back nor the expected event within {self._patience_s:g} s")
            is_last_look = is_over()
            time.sleep(0.02)

    def wait_until_read(self) -> None:
        """Waits until the broker has read all sent data, but at most half a second."""
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline and unread_bytes(self._port, self.address[1]) != 0:
            time.sleep(0.005)

    def poll(self) -> None:
        """Moves the frames that have arrived into the inbox, without waiting."""
        with suppress(TimeoutError):
            self._socket.settimeout(0.001)
            self._feed(self._socket.recv(65536))

    def _read_some(self, waiting_for: str) -> None:
        self._socket.settimeout(_SLICE_S)
        try:
            data = self._socket.recv(65536)
        except TimeoutError:
            self._refuse_dead()
            return
        except OSError as error:
            data, reason = b"", f" ({error.strerror or error})"
        else:
            reason = ""
        if not data:
            time.sleep(_SLICE_S)  # a dying process closes its connections first
            self._refuse_dead()
            raise Failed(waiting_for, f"your broker closed the connection{reason}", hint=self._half_frame())
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 8 and len(self._received) >= (length := frame_length(bytes(self._received[:4]))):
            whole = bytes(self._received[:length])
            del self._received[:length]
            frame = decode_frame(whole)
            self._timeline.add(Kind.RECEIVED, self.prefix + frame_text(frame), whole)
            self.inbox.append(frame)

    def _nothing_came(self, waiting_for: str, patience_s: float) -> Failed:
        others = ", ".join(f"{frame_text(frame)}" for frame in self.inbox[-3:])
        got = f"no such frame within {patience_s:g} s, but {others}" if others else f"nothing within {patience_s:g} s"
        return Failed(waiting_for, got, hint=self._half_frame())

    def _half_frame(self) -> str:
        """Describes the received bytes of an incomplete frame."""
        if not self._received:
            return ""
        came, length = len(self._received), int.from_bytes(self._received[:4])
        if came == length:
            return f"{came} bytes arrived, and LENGTH is {length}: LENGTH counts the bytes after it, so it should be {came - 4}."
        return f"{came} bytes of an incomplete frame arrived: LENGTH is {length}. Did the broker send the whole frame?"


def unread_bytes(listening_port: int, client_port: int) -> int | None:
    """Returns the number of bytes of a client that the listening program has not read.

    Returns None if the system does not provide the number.
    """
    ends = f":{listening_port:04X}", f":{client_port:04X}"
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            columns = line.split()
            if columns[1].endswith(ends[0]) and columns[2].endswith(ends[1]):
                return int(columns[4].partition(":")[2], 16)
    return None


def frame_text(frame: Frame) -> str:
    """Describes a frame in one line."""
    if not frame.is_answer:
        return f"{request_name(frame.code)} from your broker, opaque {frame.opaque}{_body_text(frame.body)}"
    remark = f', remark "{frame.remark[:100]}"' if frame.remark and frame.code else ""
    return f"answer {answer_name(frame.code)}, opaque {frame.opaque}{remark}{_body_text(frame.body)}"


def _body_text(body: bytes) -> str:
    """Describes a body by the records that it contains, if any."""
    if not body:
        return ""
    try:
        texts = [shown(record.body) + _check_text(record) for record in read_records(body, "the body")]
    except Failed:
        return f", body of {len(body)} bytes"
    more = f" and {len(texts) - _MAX_NAMED} more" if len(texts) > _MAX_NAMED else ""
    return f": {', '.join(texts[:_MAX_NAMED])}{more}"


def _check_text(record: Record) -> str:
    times = record.properties.get("TRANSACTION_CHECK_TIMES")
    return f", check-back {times}" if times else ""
