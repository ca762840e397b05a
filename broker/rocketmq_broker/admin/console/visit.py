"""A visit to a screen, with its query and its session with the brokers."""

from collections.abc import Callable, Mapping
from typing import Final

from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.output.numbers import is_number
from rocketmq_broker.admin.session import Session

_MAX_NUMBER: Final = 2**63 - 1

Query = Mapping[str, str]
"""The query parameters of a URL, or the fields of a form. If a name occurs more than once, its last value is used."""


class Visit:
    """The query of a visit, and a session with the brokers, which is opened when it is first used."""

    def __init__(self, brokers: Brokers, query: Query, now_ms: Callable[[], int]) -> None:
        """`now_ms` returns the milliseconds since the epoch."""
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
        """The errors of the brokers that failed. If there is only one broker, its error is raised instead."""
        return self._session.failures if self._session is not None else []

    def word(self, name: str) -> str:
        """Returns a parameter without surrounding spaces; an empty string if it is missing."""
        return self.query.get(name, "").strip()

    def number(self, name: str, otherwise: int) -> int:
        """Returns a numeric parameter, at most 2^63 - 1; `otherwise` if it is not a number."""
        text = self.word(name)
        return min(int(text), _MAX_NUMBER) if is_number(text) else otherwise
