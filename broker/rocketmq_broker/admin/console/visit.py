"""One visitor's look at a screen: what was asked for, and the brokers that are asked for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.telling.numbers import is_number

Query = Mapping[str, str]
"""The parameters of an address, or the fields of a form; the last one of several with one name."""


class Visit:
    """What was asked for; a session with the brokers begins when a screen needs one."""

    def __init__(self, brokers: Brokers, query: Query, now_ms: Callable[[], int]) -> None:
        """`now_ms` shows the milliseconds since the epoch."""
        self.brokers = brokers
        self.query = query
        self.now_ms = now_ms
        self._session: Session | None = None

    async def session(self) -> Session:
        """The brokers. Raises CannotAsk if there are none."""
        if self._session is None:
            self._session = await self.brokers.session()
        return self._session

    @property
    def failures(self) -> list[AdminError]:
        """Brokers that did not answer while others did."""
        return self._session.failures if self._session is not None else []

    def word(self, name: str) -> str:
        """A parameter without the spaces around it; empty if it is not given."""
        return self.query.get(name, "").strip()

    def number(self, name: str, otherwise: int, *, least: int = 0, most: int = 2**63 - 1) -> int:
        """A parameter that is a number between bounds; `otherwise` if it is none."""
        text = self.word(name)
        return min(max(int(text), least), most) if is_number(text) else otherwise
