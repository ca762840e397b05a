"""Sends one request to one address, and translates errors of connections and of decoding to the client's errors."""

import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from rocketmq_broker.client.errors import BrokerError, BrokerUnreachable, ClientError, RequestTimedOut, UnreadableAnswer
from rocketmq_broker.message import MessageError
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError, RemotingTimeout

P = ParamSpec("P")
T = TypeVar("T")


async def ask(
    remoting: RemotingClient,
    address: str,
    code: RequestCode | AdminRequestCode,
    header: CommandHeader | None = None,
    body: bytes = b"",
    *,
    timeout_ms: int,
) -> RemotingCommand:
    """Sends a request, and returns the response with any code. Raises BrokerUnreachable or RequestTimedOut."""
    try:
        return await remoting.invoke(address, code, header, body, timeout_ms=timeout_ms)
    except RemotingTimeout:
        raise RequestTimedOut(f"{address} did not answer {code.name} within {timeout_ms} ms") from None
    except RemotingError as error:
        raise BrokerUnreachable(f"{code.name}: {error}") from error


async def ask_for_success(
    remoting: RemotingClient,
    address: str,
    code: RequestCode,
    header: CommandHeader | None = None,
    body: bytes = b"",
    *,
    timeout_ms: int,
) -> RemotingCommand:
    """Sends a request, and returns the response if its code is SUCCESS.

    Raises BrokerError for another code, and BrokerUnreachable or RequestTimedOut if there is no response.
    """
    answer = await ask(remoting, address, code, header, body, timeout_ms=timeout_ms)
    if answer.code != ResponseCode.SUCCESS:
        raise BrokerError(answer.code, answer.remark, address)
    return answer


async def send_oneway(
    remoting: RemotingClient,
    address: str,
    code: RequestCode,
    header: CommandHeader,
    body: bytes = b"",
    *,
    remark: str | None = None,
) -> None:
    """Sends a one-way request. Raises BrokerUnreachable if no connection can be made."""
    try:
        await remoting.invoke_oneway(address, code, header, body, remark=remark)
    except RemotingError as error:
        raise BrokerUnreachable(f"{code.name}: {error}") from error


def understood(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorates a request method so that it raises UnreadableAnswer, a ClientError, if the response cannot be decoded."""

    @functools.wraps(ask)
    async def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await ask(*args, **kwargs)
        except ClientError:
            raise
        except (ProtocolError, MessageError) as error:
            raise UnreadableAnswer(f"the response cannot be decoded: {error}") from error

    return asked
