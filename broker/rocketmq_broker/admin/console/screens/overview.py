"""The first page: findings, messages that need a person, and the figures of the last minutes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rocketmq_broker.admin.asking.brokers import BrokerAddress
from rocketmq_broker.admin.asking.requests import BrokerRequests
from rocketmq_broker.admin.console.drawing.chart import Chart
from rocketmq_broker.admin.console.sampling import Sampler
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import AdminError
from rocketmq_broker.admin.health.broker_health import examine_broker
from rocketmq_broker.admin.health.finding import HealthFinding, wrong


class OverviewFacts(NamedTuple):
    """The content of the first page."""

    findings: list[HealthFinding]
    charts: list[Chart]

    @property
    def wrong(self) -> list[HealthFinding]:
        """The findings that need a person."""
        return [finding for finding in self.findings if finding.is_wrong]


def screen(sampler: Sampler) -> Screen:
    """Returns the screen, with the sampler's figures."""

    async def find(visit: Visit) -> OverviewFacts:
        findings = [
            one for broker, requests in await visit.brokers.addressed() for one in await _examined(requests, broker, visit.now_ms)
        ]
        return OverviewFacts(findings, sampler.charts())

    return Screen("/", "Overview", "overview.html", find, refresh_s=2.0)


async def _examined(requests: BrokerRequests, broker: BrokerAddress, now_ms: Callable[[], int]) -> list[HealthFinding]:
    try:
        return (await examine_broker(requests, broker, is_elsewhere=False, clock_ms=now_ms)).findings
    except AdminError as error:
        return [wrong(f"broker at {broker.address}", f"{error}.", "Ask it again.")]
