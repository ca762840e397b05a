"""The dashboard and alerts of deploy/monitoring use only existing metrics. The documentation lists the same alerts."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from flask import Flask
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from credit_service.adapters.credit_metrics import CreditCollector
from inventory_service.entrypoints.process import message_counter
from order_service.adapters.order_metrics import counted
from rocketmq_broker.databases.inbox import InboxState
from service_runtime.inbox.backlog import InboxBacklog
from service_runtime.observing.metrics import serve_metrics
from tests.unit.metrics.test_collector import COMMIT, Scraper, scrape

__all__ = ["scrape"]

ROOT = Path(__file__).parents[3]
MONITORING = ROOT / "deploy" / "monitoring"
SAMPLES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


class Idle:
    """A ledger, an inbox and a consumer with nothing to do."""

    def last_written(self) -> int:
        return 0

    def count_dead_letters(self) -> int:
        return 0

    def progress(self) -> list[Any]:
        return []

    def state(self) -> InboxState:
        return InboxState(0, 0, 0, 0, None, None, None)


def families_of_the_services() -> Iterable[Metric]:
    """Returns the metric families that the three services export."""
    registry, idle = CollectorRegistry(), cast(Any, Idle())
    serve_metrics(Flask(__name__), registry, lambda: 0)
    counted({}, registry)
    message_counter(registry)
    registry.register(CreditCollector(idle, idle))
    for program in ("credit_service", "inventory_service"):
        registry.register(InboxBacklog(idle, program, lambda: 0))
    return registry.collect()


def queries_of_the_dashboard() -> list[str]:
    panels = json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def rules() -> Iterator[dict[str, Any]]:
    for group in yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]:
        yield from group["rules"]


def metrics_in(query: str) -> set[str]:
    without_labels = re.sub(r"\{[^}]*\}|\bby \([^)]*\)", "", query)
    return set(re.findall(r"\b(?!histogram_quantile\b)[a-z]+(?:_[a-z]+)+\b", without_labels))


def test_each_metric_of_the_dashboard_and_the_alerts_is_exported(scrape: Scraper) -> None:
    scrape.broker.end(scrape.producer, scrape.broker.send(scrape.producer, "A"), COMMIT)
    families = [*scrape.registry.collect(), *families_of_the_services()]
    exported = {f"{family.name}{suffix}" for family in families for suffix in SAMPLES[family.type]}
    queries = [*queries_of_the_dashboard(), *(rule["expr"] for rule in rules())]
    assert {metric for query in queries for metric in metrics_in(query)} - exported == set()
    assert len(queries) > 40


def test_the_alerts_are_those_of_the_pages() -> None:
    observing, services = ((ROOT / "docs" / page).read_text() for page in ("observing.md", "services.md"))
    table = observing.partition("### What to alert on")[2].partition("\n## ")[0]
    named = re.findall(r"^\| [^|]+ \| `([^`]+)` \|", table, re.MULTILINE)
    named += re.findall(r"`([^`]+)`", services.partition("\nAlert on ")[2].partition(".\n")[0])
    assert {rule["expr"] for rule in rules()} == {*named, "up == 0"}


@pytest.mark.parametrize("rule", list(rules()), ids=lambda rule: rule["alert"])
def test_promtool_s_tests_let_each_alert_fire(rule: dict[str, Any]) -> None:
    scenarios = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    fired = {case["alertname"] for scenario in scenarios for case in scenario["alert_rule_test"] if case.get("exp_alerts")}
    assert rule["alert"] in fired
