"""The commands of a test, for tests in other languages: what `RocketMQ` has as methods, as paths and JSON."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from rocketmq_broker.message import MessageExt
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.rocketmq import RocketMQ
from rocketmq_broker.testing.transactions import Transaction

OK: Final = 200
BAD_REQUEST: Final = 400
NOT_FOUND: Final = 404
WRONG_METHOD: Final = 405
FAILED: Final = 409

Json: TypeAlias = Any
Arguments: TypeAlias = Mapping[str, Json]


class Mistake(ValueError):
    """A command that cannot be understood."""


class Control:
    """Answers commands. GET asks, POST changes; arguments come in the query or as a JSON object in the body."""

    def __init__(self, rocketmq: RocketMQ) -> None:
        """`rocketmq` runs."""
        self._rocketmq = rocketmq
        self._questions: dict[str, Callable[[Arguments], Awaitable[Json]]] = {
            "addresses": self._addresses,
            "pending": self._pending,
            "decided": self._decided,
            "messages": self._messages,
            "committed": self._committed,
            "rolled-back": self._rolled_back,
            "timeline": self._timeline,
            "story": self._story,
        }
        self._commands: dict[str, Callable[[Arguments], Awaitable[Json]]] = {
            "advance": self._advance,
            "lose-next-decision": self._lose_next_decision,
            "lose-next-answer": self._lose_next_answer,
            "hold-check-backs": self._hold_check_backs,
            "release-check-backs": self._release_check_backs,
            "cut-connections": self._cut_connections,
            "refuse-sends": self._refuse_sends,
            "accept-sends": self._accept_sends,
            "fill-disk": self._fill_disk,
            "free-disk": self._free_disk,
            "as-apache": self._as_apache,
            "crash": self._crash,
            "restart": self._restart,
        }

    async def answer(self, method: str, name: str, arguments: Arguments) -> tuple[int, Json]:
        """HTTP status and JSON: what was asked for, or `{"error": ...}`, 409 for what a test would call a failure."""
        of_method = {"GET": self._questions, "POST": self._commands}.get(method, {})
        command = of_method.get(name)
        if command is None:
            known = self._questions if name in self._questions else self._commands
            if name in known:
                return WRONG_METHOD, {"error": f"ask for {name} by {'GET' if known is self._questions else 'POST'}"}
            return NOT_FOUND, {"error": f"no command {name}; there are {', '.join([*self._questions, *self._commands])}"}
        try:
            return OK, await command(arguments)
        except Mistake as mistake:
            return BAD_REQUEST, {"error": f"{name}: {mistake}"}
        except (AssertionError, ValueError, RuntimeError) as failure:
            return FAILED, {"error": str(failure)}

    # questions

    async def _addresses(self, arguments: Arguments) -> Json:
        return {"namesrvAddr": self._rocketmq.namesrv_addr, "brokerAddr": self._rocketmq.broker_addr}

    async def _pending(self, arguments: Arguments) -> Json:
        return [_transaction(one) for one in await self._rocketmq.pending(_text(arguments, "key"))]

    async def _decided(self, arguments: Arguments) -> Json:
        return [_transaction(one) for one in await self._rocketmq.decided(_text(arguments, "key"))]

    async def _messages(self, arguments: Arguments) -> Json:
        return [_message(message) for message in await self._rocketmq.messages(_wanted(arguments, "topic"))]

    async def _committed(self, arguments: Arguments) -> Json:
        return _message(await self._rocketmq.committed(_wanted(arguments, "key")))

    async def _rolled_back(self, arguments: Arguments) -> Json:
        return _transaction(await self._rocketmq.rolled_back(_wanted(arguments, "key")))

    async def _timeline(self, arguments: Arguments) -> Json:
        return {"timeline": self._rocketmq.timeline(_wanted(arguments, "key"))}

    async def _story(self, arguments: Arguments) -> Json:
        return {"story": self._rocketmq.story()}

    # commands

    async def _advance(self, arguments: Arguments) -> Json:
        units = ("seconds", "minutes", "hours", "days")
        spans = {unit: _number(arguments, unit) for unit in units if unit in arguments}
        if not spans or set(arguments) - set(units):
            raise Mistake(f"a number of {', '.join(units)} is expected")
        await self._rocketmq.advance(**spans)
        return {"elapsedSeconds": self._rocketmq.time.elapsed_s}

    async def _lose_next_decision(self, arguments: Arguments) -> Json:
        self._rocketmq.lose_next_decision(int(_number(arguments, "count", 1)))
        return {}

    async def _lose_next_answer(self, arguments: Arguments) -> Json:
        self._rocketmq.lose_next_answer(int(_number(arguments, "count", 1)))
        return {}

    async def _hold_check_backs(self, arguments: Arguments) -> Json:
        self._rocketmq.faults.are_checks_held = True
        return {}

    async def _release_check_backs(self, arguments: Arguments) -> Json:
        self._rocketmq.release_check_backs()
        return {}

    async def _cut_connections(self, arguments: Arguments) -> Json:
        self._rocketmq.cut_connections()
        return {}

    async def _refuse_sends(self, arguments: Arguments) -> Json:
        name = _text(arguments, "code") or ResponseCode.SYSTEM_BUSY.name
        if name not in ResponseCode.__members__:
            raise Mistake(f"{name!r} is no response code; one is SYSTEM_BUSY")
        times = int(_number(arguments, "times")) if "times" in arguments else None
        self._rocketmq.refuse_sends(ResponseCode[name], times=times)
        return {}

    async def _accept_sends(self, arguments: Arguments) -> Json:
        self._rocketmq.accept_sends()
        return {}

    async def _fill_disk(self, arguments: Arguments) -> Json:
        self._rocketmq.fill_disk()
        return {}

    async def _free_disk(self, arguments: Arguments) -> Json:
        self._rocketmq.free_disk()
        return {}

    async def _as_apache(self, arguments: Arguments) -> Json:
        release = _number(arguments, "release", 4)
        try:
            self._rocketmq.as_apache(int(release))
        except ValueError as error:
            raise Mistake(str(error)) from None
        return {}

    async def _crash(self, arguments: Arguments) -> Json:
        await self._rocketmq.crash(power=arguments.get("power") in {True, "true"})
        return {}

    async def _restart(self, arguments: Arguments) -> Json:
        await self._rocketmq.restart()
        return {}


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


def _text(arguments: Arguments, name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise Mistake(f"{name} is text")
    return value


def _wanted(arguments: Arguments, name: str) -> str:
    value = _text(arguments, name)
    if not value:
        raise Mistake(f"{name} is missing")
    return value


def _number(arguments: Arguments, name: str, default: float | None = None) -> float:
    value = arguments.get(name, default)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise Mistake(f"{name} is a number") from None
    if isinstance(value, bool) or not 0 <= number < 1e9:
        raise Mistake(f"{name} is a number from 0 on")
    return number
