"""A simulated member of every producer group. It is always online, so that checks are counted without real producers."""

import asyncio
from collections.abc import Callable
from typing import cast

from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler


class UnknownProducer:
    """The connection of a producer that responds to each check-back with UNKNOWN."""

    def __init__(self, broker: Callable[[], RequestHandler]) -> None:
        """Creates a producer. `broker` returns the running broker."""
        self._broker = broker
        self.peer = "unknown_producer"
        self.peer_ip = "0.0.0.0"
        self.born_host = bytes(8)
        self.is_open = self.is_writable = True
        self.must_rest = False

    def ask(self, code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> None:
        """Sends a one-way request to the broker."""
        send_as(cast(Connection, self), self._broker(), code, header, body)

    def invoke_oneway(self, code: int, header: CheckTransactionStateRequestHeader, body: bytes) -> None:
        """Responds to a check-back with UNKNOWN. Ignores other requests."""
        if code == RequestCode.CHECK_TRANSACTION_STATE:
            asyncio.get_running_loop().call_soon(self.ask, RequestCode.END_TRANSACTION, unknown_answer(header))

    def send(self, frame: bytes) -> None:
        """Ignores the response."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """Ignores the responses."""

    def postpone(self, requests: list[RemotingCommand]) -> None:
        """Ignores the requests."""

    def close(self) -> None:
        """Does nothing, because the connection stays open."""


def send_as(
    connection: Connection, broker: RequestHandler, code: RequestCode, header: CommandHeader | None, body: bytes = b""
) -> None:
    """Passes a one-way request to the broker, as if received from `connection`."""
    (request,) = FrameDecoder().feed(encode_request(code, header, body, opaque=0, oneway=True))
    broker.on_requests(connection, [request])


def unknown_answer(check: CheckTransactionStateRequestHeader) -> EndTransactionRequestHeader:
    """Returns the header of the response UNKNOWN to a check-back."""
    return EndTransactionRequestHeader(
        producer_group="",
        tran_state_table_offset=check.tran_state_table_offset,
        commit_log_offset=check.commit_log_offset,
        commit_or_rollback=sysflag.TRANSACTION_NOT_TYPE,
        from_transaction_check=True,
        msg_id=check.msg_id or "",
        transaction_id=check.transaction_id,
    )
