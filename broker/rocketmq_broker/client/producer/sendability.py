"""Checks whether a message could be sent now, using the results of the latest sends and the brokers' runtime information."""

import asyncio
from typing import Final

from rocketmq_broker.client.errors import ClientError, NameServerUnreachable
from rocketmq_broker.client.instance.broker_calls import BrokerCalls
from rocketmq_broker.client.instance.calls import understood
from rocketmq_broker.protocol.bodies.broker import KVTable
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.java_properties import parse_properties

TIMEOUT_MS: Final = 1000
"""The timeout of a request in milliseconds, which is short because a status request must not block."""
_JUST_NOW_S: Final = 1.0
_LATELY_S: Final = 10.0
_MIN_FAILURES: Final = 3
_WARNING_PERCENT: Final = 90
"""The default of diskSpaceWarningLevelRatio in percent. Apache's brokers do not report this Java system property."""


class LatestSends:
    """The results of the latest sends. A success clears all earlier failures."""

    def __init__(self) -> None:
        self._stored_s: float | None = None
        self._failed_s = 0.0
        self._failures = 0
        self._reason = ""

    def stored(self, now_s: float) -> None:
        """Records that a broker stored a message."""
        self._stored_s, self._failures = now_s, 0

    def failed(self, reason: str, now_s: float) -> None:
        """Records that a broker refused a valid message, did not flush it in time, or stored a half message too unsafely.

        Do not call this method for an unreachable broker.
        """
        self._failed_s, self._reason = now_s, reason
        self._failures += 1

    def is_stored_just_now(self, now_s: float) -> bool:
        """Returns True if a message was stored within the last second. In that case, no request to brokers is needed."""
        return self._stored_s is not None and now_s - self._stored_s < _JUST_NOW_S

    def why_failed(self, now_s: float) -> str | None:
        """Returns the reason for the latest refusal, if it is less than 10 s old and the last three sends were refused.

        Returns None otherwise. Brokers do not report every reason why they refuse messages, for example a disk that hangs.
        """
        is_lately = self._failures >= _MIN_FAILURES and now_s - self._failed_s < _LATELY_S
        return self._reason if is_lately else None


class Sendability:
    """Checks whether brokers would store a message. Requests the brokers' state if necessary."""

    def __init__(self, calls: BrokerCalls, latest: LatestSends) -> None:
        """`latest` contains the results of the latest sends."""
        self._calls = calls
        self._latest = latest

    async def why_unsendable(self, topic: str) -> str | None:
        """Returns the reason why no broker would store a message to the topic now, or None if at least one would."""
        now_s = asyncio.get_running_loop().time()
        if self._latest.is_stored_just_now(now_s):
            return None
        if (reason := self._latest.why_failed(now_s)) is not None:
            return reason
        try:
            reasons = await self._reasons(topic)
        except ClientError as error:
            return str(error)
        return None if None in reasons else "; ".join(filter(None, reasons))

    async def refusing_brokers(self, topic: str) -> list[str]:
        """Returns one reason for each broker of the topic that would not store a message.

        Raises ClientError if no route is available.
        """
        return [reason for reason in await self._reasons(topic) if reason is not None]

    async def _reasons(self, topic: str) -> list[str | None]:
        try:
            async with asyncio.timeout(TIMEOUT_MS / 1000):
                queues = await self._calls.routes.queues_to_publish(topic)
        except TimeoutError:
            raise NameServerUnreachable(
                f"no name server returned the route of topic {topic} within {TIMEOUT_MS} ms: check their addresses"
            ) from None
        names = sorted({queue.broker_name for queue in queues})
        return await asyncio.gather(*(self._why_refusing(name) for name in names))

    async def _why_refusing(self, broker_name: str) -> str | None:
        try:
            return await self._ask(broker_name)
        except ClientError as error:
            return f"broker {broker_name} stores nothing: {error}"

    @understood
    async def _ask(self, broker_name: str) -> str | None:
        figures = await self._calls.ask_master(broker_name, RequestCode.GET_BROKER_RUNTIME_INFO, None, timeout_ms=TIMEOUT_MS)
        table = KVTable.decode(figures.body).table
        if refusal := table.get("putMessageRefusal"):
            return f"broker {broker_name} stores nothing: {refusal}"
        used_percent = _number(table.get("commitLogDiskRatio")) * 100
        if used_percent < _WARNING_PERCENT:
            return None
        settings = await self._calls.ask_master(broker_name, RequestCode.GET_BROKER_CONFIG, None, timeout_ms=TIMEOUT_MS)
        level = parse_properties(settings.body.decode(errors="replace")).get("diskSpaceWarningLevelRatio")
        is_full = used_percent >= (_number(level) or _WARNING_PERCENT)
        return f"broker {broker_name} stores nothing: its disk is {used_percent:.0f} % full" if is_full else None


def _number(text: str | None) -> float:
    """Returns the number in the string, or 0 if it is not a number."""
    try:
        return float(text or 0)
    except ValueError:
        return 0.0
