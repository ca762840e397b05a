"""A producer of every group that is always online and never knows: with it, checks count while no real producer is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from rocketmq_broker.message import sysflag
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from rocketmq_broker.remoting.connection import Connection, RequestHandler


class Nobody:
    """Stands for the connection of that producer."""

    def __init__(self, broker: Callable[[], RequestHandler]) -> None:
        """`broker` is the one that runs now."""
        self._broker = broker
        self.peer = "nobody"
        self.peer_ip = "0.0.0.0"
        self.born_host = bytes(8)
        self.is_open = self.is_writable = True
        self.must_rest = False

    def ask(self, code: RequestCode, header: CommandHeader | None, body: bytes = b"") -> None:
        """Sends the broker a request, and wants no answer."""
        send_as(cast(Connection, self), self._broker(), code, header, body)

    def invoke_oneway(self, code: int, header: CheckTransactionStateRequestHeader, body: bytes) -> None:
        """Answers a check: not decided."""
        if code == RequestCode.CHECK_TRANSACTION_STATE:
            asyncio.get_running_loop().call_soon(self.ask, RequestCode.END_TRANSACTION, unknown_answer(header))

    def send(self, frame: bytes) -> None:
        """It reads no answers."""

    def send_at_once(self, frames: list[bytes]) -> None:
        """It reads no answers."""

    def postpone(self, requests: list[RemotingCommand]) -> None:
        """Nothing is left to do later."""

    def close(self) -> None:
        """It stays."""


def send_as(
    connection: Connection, broker: RequestHandler, code: RequestCode, header: CommandHeader | None, body: bytes = b""
) -> None:
    """Lets the broker read a one-way request as if it had come by that connection."""
    (request,) = FrameDecoder().feed(encode_request(code, header, body, opaque=0, oneway=True))
    broker.on_requests(connection, [request])


def unknown_answer(check: CheckTransactionStateRequestHeader) -> EndTransactionRequestHeader:
    """The answer to a check of a producer that does not know."""
    return EndTransactionRequestHeader(
        producer_group="",
        tran_state_table_offset=check.tran_state_table_offset,
        commit_log_offset=check.commit_log_offset,
        commit_or_rollback=sysflag.TRANSACTION_NOT,
        from_transaction_check=True,
        msg_id=check.msg_id or "",
        transaction_id=check.transaction_id,
    )
