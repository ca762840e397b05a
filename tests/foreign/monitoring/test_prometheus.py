"""Tests deploy/monitoring with Prometheus's own programs: the rules, their tests, and each dashboard query on real metrics."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from demo.ports import free_ports
from demo.processes import Processes, answers
from demo.system import QUICK_CHECKS, System
from tests.waiting import wait_until

MONITORING = Path(__file__).parents[3] / "deploy" / "monitoring"
PROMTOOL, PROMETHEUS = shutil.which("promtool"), shutil.which("prometheus")
UNANSWERED = {
    "sum(rocketmq_dead_letters)",
    "sum(rocketmq_discarded_messages)",
    "sum by (decision) (rate(order_check_backs_total[5m]))",
}
"""Queries of what has no labels before it has happened once: nothing was checked back, given up or discarded here."""

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(PROMTOOL is None or PROMETHEUS is None, reason="no prometheus: apt-get install prometheus"),
]


@pytest.mark.parametrize("command", ["check config prometheus.yml", "check rules alerts.yml", "test rules alerts_test.yml"])
def test_promtool_has_nothing_to_say(command: str) -> None:
    checked = subprocess.run([str(PROMTOOL), *command.split()], cwd=MONITORING, capture_output=True, text=True, timeout=60)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_query_of_the_dashboard_is_answered_and_no_alert_fires_while_all_is_well(
    processes: Processes, tmp_path: Path
) -> None:
    broker_port, port = free_ports(2)
    system = System(
        processes,
        tmp_path / "system",
        broker_settings={**QUICK_CHECKS, "metricsExporterType": "PROM", "metricsPromExporterPort": str(broker_port)},
        environment={f"{name}_METRICS_ENABLED": "true" for name in ("ORDER", "CREDIT", "INVENTORY")},
        has_inventory=True,
    )
    system.start()
    order = {"customer": "ada", "items": [{"name": "tea", "quantity": 1, "price_cents": 250}]}
    assert httpx.post(f"{system.order_url}/orders", json=order, timeout=60).status_code == httpx.codes.CREATED
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / "alerts.yml")]
    addresses = {
        "broker": f"127.0.0.1:{broker_port}",
        **{job: getattr(system, f"{job}_url").removeprefix("http://") for job in ("order", "credit", "inventory")},
    }
    for scrape in config["scrape_configs"]:
        scrape["static_configs"] = [{"targets": [addresses[scrape["job_name"]]]}]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    url = f"http://127.0.0.1:{port}"
    command = [
        str(PROMETHEUS),
        f"--config.file={tmp_path}/prometheus.yml",
        f"--storage.tsdb.path={tmp_path}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    processes.add("prometheus", command, is_ready=answers(f"{url}/-/ready")).start()

    def asked(path: str, **parameters: str) -> Any:
        return httpx.get(f"{url}/api/v1/{path}", params=parameters, timeout=60).raise_for_status().json()["data"]

    def result(query: str) -> list[Any]:
        return list(asked("query", query=query)["result"])

    wait_until(lambda: len(result("up == 1")) == len(addresses))
    panels = json.loads((MONITORING / "grafana-dashboard.json").read_text())["panels"]
    queries = {target["expr"] for panel in panels for target in panel.get("targets", ())}
    wait_until(lambda: {query for query in queries if not result(query)} <= UNANSWERED)
    assert [alert for alert in asked("alerts")["alerts"] if alert["state"] == "firing"] == []
    assert {rule["health"] for group in asked("rules")["groups"] for rule in group["rules"]} == {"ok"}
