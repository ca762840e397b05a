"""The overview screen, which shows problems, charts of the last few minutes, and the state of the brokers."""

from collections.abc import Callable
from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.brokers import BrokerAddress
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console.drawing.chart import Chart
from rocketmq_broker.admin.console.pages import Section, url
from rocketmq_broker.admin.console.sampling import Sampler
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.health.broker_health import examine_broker, subject_of
from rocketmq_broker.admin.health.consumer_groups import examine_groups
from rocketmq_broker.admin.health.finding import HealthFinding, wrong

_SCREEN_OF_COMMAND: Final = {
    "rocketmq-admin pending": Section("Pending", "/pending"),
    "rocketmq-admin discarded": Section("Discarded", "/discarded"),
    "rocketmq-admin dead-letters": Section("Dead letters", "/dead-letters"),
}
"""Maps the commands that a finding's advice may contain to the screens with the same function."""


class OverviewFacts(NamedTuple):
    """The content of the overview."""

    findings: list[HealthFinding]
    charts: list[Chart]

    @property
    def wrong(self) -> list[HealthFinding]:
        """The findings that are problems."""
        return [finding for finding in self.findings if finding.is_wrong]

    @staticmethod
    def act_at(finding: HealthFinding) -> Section | None:
        """Returns the screen where an operator can act on the finding; None if there is none."""
        group = finding.facts.get("group")
        if group is not None:
            return Section(f"Consumer group {group}", url("/group", group=group))
        return next((screen for command, screen in _SCREEN_OF_COMMAND.items() if command in (finding.what_to_do or "")), None)


def screen(sampler: Sampler, path: str) -> Screen:
    """Returns the overview screen, which is served at `path` and contains the sampler's charts."""

    async def find(visit: Visit) -> OverviewFacts:
        findings = [
            one for broker, requests in await visit.brokers.addressed() for one in await _examined(requests, broker, visit.now_ms)
        ]
        return OverviewFacts(findings, sampler.charts())

    return Screen(path, "Overview", "overview.html", find, refresh_s=2.0)


async def _examined(requests: BrokerRequests, broker: BrokerAddress, now_ms: Callable[[], int]) -> list[HealthFinding]:
    try:
        found = await examine_broker(requests, broker, is_remote=False, clock_ms=now_ms)
        if found.version is None:
            return found.findings
        return found.findings + await examine_groups(subject_of(broker), requests, now_ms())
    except AdminError as error:
        return [wrong(f"broker at {broker.address}", f"{error}.", "Reload this page.")]
