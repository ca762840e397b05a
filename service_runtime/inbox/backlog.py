"""The health of an inbox: the number and age of the waiting messages, the last error, and Prometheus metrics."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel

from rocketmq_broker.databases.inbox import BaseInbox, InboxState
from service_runtime.database.database_errors import DatabaseFailure

MAX_AGE_S: Final = 30.0
"""The maximum age in seconds of the oldest new message. If it is older, the workers are too slow or do not run."""
_FAILING_S: Final = 5.0
"""The age in seconds of the oldest message above which failures make the service unready.

If only single messages are bad, other messages have been processed by then, and the bad ones count as suspected.
"""


class InboxHealth(BaseModel):
    """The numbers and the age of the messages in the inbox, and the last error."""

    waiting: int
    """The number of messages that are acknowledged and not processed yet."""
    failed: int
    """The number of waiting messages that have failed and will be retried."""
    parked: int
    """The number of messages that failed too often, and require an operator's action."""
    oldest_s: float | None
    """The age in seconds of the oldest waiting message."""
    last_error: str | None


@dataclass(frozen=True, slots=True)
class InboxBacklog(Collector):
    """Reports the state of an inbox, for readiness checks, health reports and metrics."""

    inbox: BaseInbox[Any]
    program: str
    """The program whose command `inbox` lists and retries parked messages. Its first word is the prefix of the metrics' names."""
    now_ms: Callable[[], int]

    def state(self) -> InboxState | None:
        """Returns the state, or None if the database is unavailable."""
        try:
            return self.inbox.state()
        except DatabaseFailure:
            return None

    def age_s(self, at_ms: int | None) -> float:
        """Returns the time since `at_ms` in seconds, or 0 for None."""
        return 0.0 if at_ms is None else max(0, self.now_ms() - at_ms) / 1000

    def why_unready(self) -> str | None:
        """Returns the reason why stored messages are not processed, in one line; None if they are."""
        state = self.state()
        if state is None:
            return None  # the check of the database reports that
        because = f": {state.last_error}" if state.last_error else ""
        if state.failed - state.suspected > 1 and self.age_s(state.oldest_received_at_ms) > _FAILING_S:
            return f"{state.failed} messages fail, and none is processed{because}"
        oldest_s = self.age_s(state.oldest_new_at_ms)
        if state.new and oldest_s > MAX_AGE_S:
            return f"{state.waiting} messages wait to be processed, the oldest for {oldest_s:.0f} s{because}"
        return None

    def attention(self, state: InboxState | None) -> list[str]:
        """Returns a line for operators about each problem that needs attention."""
        lines = []
        if state is not None and state.failed:
            lines.append(f"{state.failed} messages fail, and are tried again: {state.last_error}")
        if state is not None and state.parked:
            command = f"python -m {self.program} inbox"
            lines.append(
                f"{state.parked} messages are parked: list them with `{command} list`, fix what refused them, and run"
                f" `{command} retry`"
            )
        return lines

    def health(self, state: InboxState | None) -> InboxHealth | None:
        """Returns the state for a health report; None if it is unknown."""
        if state is None:
            return None
        oldest_s = round(self.age_s(state.oldest_received_at_ms), 1) if state.waiting else None
        return InboxHealth(
            waiting=state.waiting, failed=state.failed, parked=state.parked, oldest_s=oldest_s, last_error=state.last_error
        )

    def collect(self) -> Iterable[Metric]:
        """Yields the metrics at each scrape, or nothing while the database is unavailable."""
        state, prefix = self.state(), self.program.partition("_")[0]
        if state is None:
            return
        for name, text, value in (
            ("inbox_waiting", "Messages that wait to be processed.", state.waiting),
            ("inbox_failed", "Waiting messages that have failed.", state.failed),
            ("inbox_parked", "Messages that failed too often, and wait for a person.", state.parked),
            ("inbox_oldest_seconds", "Age of the oldest waiting message.", self.age_s(state.oldest_received_at_ms)),
        ):
            yield GaugeMetricFamily(f"{prefix}_{name}", text, value=value)
