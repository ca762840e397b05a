"""One visit to a screen: its query, and the brokers that are asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.telling.numbers import is_number

Query = Mapping[str, str]
"""The parameters of an address, or the fields of a form; the last one of several with one name."""


class Visit:
    """The query of a visit. A session with the brokers begins when a screen needs one."""

    def __init__(self, brokers: Brokers, query: Query, now_ms: Callable[[], int]) -> None:
        """`now_ms` shows the milliseconds since the epoch."""
        self.brokers = brokers
        self.query = query
        self.now_ms = now_ms
        self._session: Session | None = None

    async def session(self) -> Session:
        """Returns the session with the brokers. Raises CannotAsk if there are none."""
        if self._session is None:
            self._session = await self.brokers.session()
        return self._session

    @property
    def failures(self) -> list[AdminError]:
        """The errors of brokers that did not answer while others did."""
        return self._session.failures if self._session is not None else []

    def word(self, name: str) -> str:
        """Returns a parameter without surrounding spaces; empty if it is missing."""
        return self.query.get(name, "").strip()

    def number(self, name: str, otherwise: int, *, least: int = 0, most: int = 2**63 - 1) -> int:
        """Returns a numeric parameter between bounds; `otherwise` if it is not a number."""
        text = self.word(name)
        return min(max(int(text), least), most) if is_number(text) else otherwise
