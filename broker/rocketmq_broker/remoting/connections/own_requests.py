"""The requests that this end sends on one connection, and their responses (RocketMQ's responseTable)."""

import asyncio
import logging

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.codes import SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.pending import PendingRequests, TooManyPending
from rocketmq_broker.remoting.errors import ConnectionClosed, RemotingTimeout, TooManyRequests


class SignedHeader(CommandHeader):
    """A header that combines the fields of another header with the fields of its signature."""

    fields: dict[str, str]

    def ext_fields(self) -> dict[str, str]:
        """Returns all fields, keyed by their names on the wire."""
        return self.fields

    def encode_binary(self) -> bytes:
        """Encodes the fields, except those with empty values.

        Apache's brokers would decode an empty value as null and sign it as "null".
        """
        return ext_fields.encode_binary({name: value for name, value in self.fields.items() if value})


def signed(header: CommandHeader | None, body: bytes, credentials: SessionCredentials) -> SignedHeader:
    """Returns the header of a request, signed with the credentials."""
    return SignedHeader(credentials.signed(header.ext_fields() if header is not None else {}, body))


logger = logging.getLogger(__name__)


class OwnRequests:
    """Encodes requests, and passes each response to its caller. All deadlines share one timer."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, serialize_type: SerializeType, credentials: SessionCredentials | None
    ) -> None:
        """Creates an empty table of requests. If `credentials` are given, they sign every request."""
        self._loop = loop
        self._serialize_type = serialize_type
        self._credentials = credentials
        self._pending: PendingRequests[asyncio.Future[RemotingCommand]] = PendingRequests()
        self._expiry: asyncio.TimerHandle | None = None
        self.peer = "?"
        """The address of the peer, for error messages."""

    def new(
        self, code: int, header: CommandHeader | None, body: bytes, timeout_ms: int
    ) -> tuple[bytes, asyncio.Future[RemotingCommand]]:
        """Returns the frame to send, and a future for the response. Raises TooManyRequests."""
        answer: asyncio.Future[RemotingCommand] = self._loop.create_future()
        deadline_ms = self._now_ms() + timeout_ms
        try:
            opaque = self._pending.add(answer, deadline_ms)
        except TooManyPending as error:
            raise TooManyRequests(f"{self.peer}: {error}") from None
        frame = self._frame(code, header, body, opaque)
        self._expire_at(deadline_ms)
        return frame, answer

    def new_oneway(self, code: int, header: CommandHeader | None, body: bytes, remark: str | None = None) -> bytes:
        """Returns the frame of a one-way request, which has no response."""
        return self._frame(code, header, body, self._pending.next_opaque(), oneway=True, remark=remark)

    def answered(self, command: RemotingCommand) -> None:
        """Passes a response to the caller that waits for it."""
        answer = self._pending.take(command.opaque)
        if answer is None:
            logger.debug("ignored an unexpected or late answer from %s: opaque %d", self.peer, command.opaque)
        elif not answer.done():
            answer.set_result(command)

    def ended(self, reason: object) -> None:
        """Fails all waiting requests, after the connection has ended."""
        if self._expiry is not None:
            self._expiry.cancel()
        for answer in self._pending.take_all():
            if not answer.done():
                answer.set_exception(ConnectionClosed(f"the connection to {self.peer} ended: {reason}"))

    def _frame(
        self,
        code: int,
        header: CommandHeader | None,
        body: bytes,
        opaque: int,
        *,
        oneway: bool = False,
        remark: str | None = None,
    ) -> bytes:
        if self._credentials is not None:
            header = signed(header, body, self._credentials)
        return encode_request(
            code, header, body, opaque=opaque, serialize_type=self._serialize_type, oneway=oneway, remark=remark
        )

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _expire_at(self, deadline_ms: int) -> None:
        """Sets the timer to fire at the deadline, unless it is already set to fire earlier."""
        when_s = (deadline_ms + 1) / 1000
        if self._expiry is not None:
            if self._expiry.when() <= when_s:
                return
            self._expiry.cancel()
        self._expiry = self._loop.call_at(when_s, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        for answer in self._pending.take_expired(self._now_ms()):
            if not answer.done():
                answer.set_exception(RemotingTimeout(f"no answer from {self.peer} in time"))
        earliest_ms = self._pending.earliest_deadline_ms()
        if earliest_ms is not None:
            self._expire_at(earliest_ms)
