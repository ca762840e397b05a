"""Offers the methods of `RocketMQ` over HTTP with JSON, for tests in other languages."""

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias, TypeVar

from rocketmq_broker.message import MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.apache import release_named
from rocketmq_broker.testing.rocketmq import RocketMQ
from rocketmq_broker.testing.transactions import Transaction

OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
WRONG_METHOD: Final = 405
FAILED: Final = 409

MAX_DAYS: Final = 400
"""The maximum number of days in one `advance`. A larger number is probably a mistake."""
_UNITS: Final = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400}
_TRUTHS: Final[Mapping[bool | str, bool]] = {True: True, "true": True, False: False, "false": False}

T = TypeVar("T")
Json: TypeAlias = Any
Arguments: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class _Command:
    """A method of RocketMQ with parsers for its arguments and a conversion of its result to JSON."""

    method: Callable[..., Any]
    arguments: Mapping[str, Callable[[Arguments], Any]] = field(default_factory=dict)
    """A parser for each parameter of the method. Parsers raise ValueError."""
    to_json: Callable[[Any], Json] = lambda _: {}

    @property
    def name(self) -> str:
        """The name of the command, which is its path in the URL."""
        return self.method.__name__.strip("_").replace("_", "-")


class Control:
    """Executes commands: GET for queries, POST for changes. Arguments are in the query string or in a JSON object in the body."""

    def __init__(self, rocketmq: RocketMQ) -> None:
        """Creates the control of `rocketmq`, a running broker that executes the commands."""
        self._rocketmq = rocketmq

    async def answer(self, method: str, name: str, arguments: Arguments) -> tuple[int, Json]:
        """Returns an HTTP status and JSON: the result, or `{"error": ...}`. The status is 409 if the command fails."""
        command = _COMMANDS.get(method, {}).get(name)
        if command is None:
            if wanted := next((method for method, commands in _COMMANDS.items() if name in commands), None):
                return WRONG_METHOD, {"error": f"use {wanted} for {name}"}
            return NOT_FOUND, {"error": f"unknown command {name}: must be one of {', '.join(chain(*_COMMANDS.values()))}"}
        try:
            read = {parameter: reader(arguments) for parameter, reader in command.arguments.items()}
        except ValueError as mistake:
            return BAD_REQUEST, {"error": f"{name}: {mistake}"}
        try:
            found = command.method(self._rocketmq, **read)
            return OK, command.to_json(await found if isinstance(found, Awaitable) else found)
        except (AssertionError, ValueError, RuntimeError) as failure:
            return FAILED, {"error": str(failure)}


def _addresses(rocketmq: RocketMQ) -> Json:
    return {"namesrvAddr": rocketmq.namesrv_addr, "brokerAddr": rocketmq.broker_addr}


async def _advance(rocketmq: RocketMQ, spans: dict[str, float]) -> Json:
    await rocketmq.advance(**spans)
    return {"elapsedSeconds": rocketmq.time.elapsed_s}


def _hold_check_backs(rocketmq: RocketMQ) -> None:
    rocketmq.faults.are_checks_held = True


def _transaction(transaction: Transaction) -> Json:
    return {
        "state": transaction.state,
        "transactionId": transaction.transaction_id,
        "topic": transaction.topic,
        "keys": list(transaction.keys),
        "producerGroup": transaction.producer_group,
        "checks": transaction.checks,
        "nextCheckInSeconds": transaction.next_check_in_s,
    }


def _each(to_json: Callable[[T], Json]) -> Callable[[Iterable[T]], Json]:
    return lambda found: [to_json(one) for one in found]


def _message(message: MessageExt) -> Json:
    return {
        "topic": message.topic,
        "messageId": message.message_id,
        "keys": list(message.keys),
        "tags": message.tags,
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "reconsumeTimes": message.reconsume_times,
        "body": message.body.decode(errors="replace"),
        "bodyBase64": base64.b64encode(message.body).decode(),
        "properties": dict(message.properties),
    }


def _text(name: str) -> Callable[[Arguments], str | None]:
    def read(arguments: Arguments) -> str | None:
        value = arguments.get(name)
        if value is not None and not isinstance(value, str):
            raise ValueError(f"{name} must be a string, not {value!r}")
        return value

    return read


def _wanted(name: str) -> Callable[[Arguments], str]:
    def read(arguments: Arguments) -> str:
        value = _text(name)(arguments)
        if not value:
            raise ValueError(f"{name} is missing")
        return value

    return read


def _count(name: str, default: int | None) -> Callable[[Arguments], int | None]:
    return lambda arguments: int(_number(arguments, name)) if name in arguments else default


def _number(arguments: Arguments, name: str) -> float:
    value = arguments[name]
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, not {value!r}") from None
    if isinstance(value, bool) or not 0 <= number < 1e9:
        raise ValueError(f"{name} must be a number from 0 to 1e9, not {value!r}")
    return number


def _spans(arguments: Arguments) -> dict[str, float]:
    spans = {unit: _number(arguments, unit) for unit in _UNITS if unit in arguments}
    if not spans or set(arguments) - set(_UNITS):
        raise ValueError(f"expected at least one of {', '.join(_UNITS)}")
    days = sum(number * _UNITS[unit] for unit, number in spans.items()) / _UNITS["days"]
    if days > MAX_DAYS:
        raise ValueError(f"time too long: {days:g} days, at most {MAX_DAYS} in one command")
    return spans


def _is_set(name: str) -> Callable[[Arguments], bool]:
    def read(arguments: Arguments) -> bool:
        value = arguments.get(name, False)
        if not isinstance(value, (bool, str)) or value not in _TRUTHS:
            raise ValueError(f"{name} must be true or false, not {value!r}")
        return _TRUTHS[value]

    return read


def _code(arguments: Arguments) -> ResponseCode:
    name = _text("code")(arguments) or ResponseCode.SYSTEM_BUSY.name
    if name not in ResponseCode.__members__:
        raise ValueError(f"unknown response code {name!r}: must be a name such as SYSTEM_BUSY")
    return ResponseCode[name]


def _release(arguments: Arguments) -> int:
    release = int(_number({"release": 4, **arguments}, "release"))
    release_named(release)
    return release


def _by_name(*commands: _Command) -> dict[str, _Command]:
    return {command.name: command for command in commands}


_COMMANDS: Final = {
    "GET": _by_name(
        _Command(_addresses, to_json=dict),
        _Command(RocketMQ.pending, {"word": _text("key")}, _each(_transaction)),
        _Command(RocketMQ.decided, {"word": _text("key")}, _each(_transaction)),
        _Command(RocketMQ.messages, {"topic": _wanted("topic")}, _each(_message)),
        _Command(RocketMQ.committed, {"word": _wanted("key")}, _message),
        _Command(RocketMQ.rolled_back, {"word": _wanted("key")}, _transaction),
        _Command(RocketMQ.timeline, {"word": _wanted("key")}, lambda text: {"timeline": text}),
        _Command(RocketMQ.story, to_json=lambda text: {"story": text}),
    ),
    "POST": _by_name(
        _Command(_advance, {"spans": _spans}, dict),
        _Command(RocketMQ.lose_next_decision, {"count": _count("count", 1)}),
        _Command(RocketMQ.lose_next_answer, {"count": _count("count", 1)}),
        _Command(_hold_check_backs),
        _Command(RocketMQ.release_check_backs),
        _Command(RocketMQ.cut_connections),
        _Command(RocketMQ.refuse_sends, {"code": _code, "times": _count("times", None)}),
        _Command(RocketMQ.accept_sends),
        _Command(RocketMQ.fill_disk),
        _Command(RocketMQ.free_disk),
        _Command(RocketMQ.as_apache, {"release": _release}),
        _Command(RocketMQ.crash, {"power": _is_set("power")}),
        _Command(RocketMQ.restart),
    ),
}
"""Maps each HTTP method to its commands, keyed by name."""
