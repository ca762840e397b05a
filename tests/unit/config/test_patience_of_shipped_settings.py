"""Tests that shipped configurations with frequent check-backs do not discard messages too early.

With each of them, a transaction stays pending during a long database outage.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from demo.system import QUICK_CHECKS
from order_service.settings import OrderSettings
from rocketmq_broker.config import BrokerSettings, load_settings

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted(path for folder in ("deploy", "tutorials") for path in (ROOT / folder).rglob("broker.conf"))
AT_LEAST_HOURS = 8


def patience_hours(settings: BrokerSettings) -> float:
    """Returns the number of hours for which a producer may return UNKNOWN before the broker discards the message."""
    asking_ms = settings.transaction_time_out + settings.transaction_check_max * settings.transaction_check_interval
    return min(asking_ms / 3_600_000, settings.file_reserved_time)


def test_the_configurations_of_compose_and_of_the_tutorials_are_found() -> None:
    assert ROOT / "deploy" / "docker" / "broker.conf" in SHIPPED
    assert ROOT / "tutorials" / "lose-a-commit" / "broker.conf" in SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_configuration_outlasts_an_outage_of_hours(path: Path) -> None:
    assert patience_hours(load_settings(path, None).settings) >= AT_LEAST_HOURS


def test_the_settings_of_the_demo_outlast_an_outage_of_hours() -> None:
    assert patience_hours(load_settings(None, dict(QUICK_CHECKS)).settings) >= AT_LEAST_HOURS


def last_check_hours(settings: BrokerSettings) -> float:
    """Returns the minimum age of a half message at its last check-back, in hours."""
    return patience_hours(settings) - settings.transaction_check_interval / 3_600_000


def payment_deadline_hours(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> float:
    """Returns how many hours the order service waits for a payment in this environment."""
    monkeypatch.delenv("ORDER_PAYMENT_DEADLINE_S", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return OrderSettings(_cli_parse_args=False).payment_deadline_s / 3600


def environment_of_compose() -> dict[str, str]:
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    environment: dict[str, object] = compose["services"]["order-service"]["environment"]
    return {name: str(value) for name, value in environment.items() if name == "ORDER_PAYMENT_DEADLINE_S"}


@pytest.mark.parametrize(
    "path", [None, *SHIPPED], ids=lambda path: str(path.relative_to(ROOT)) if path else "RocketMQ's defaults"
)
def test_an_order_is_asked_about_once_more_after_its_deadline_for_payment(
    path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last check-back about an order is sent after the order's payment deadline.

    Otherwise the broker could discard the message of an order that may still be paid, or has just been paid.
    """
    environment = environment_of_compose() if path == ROOT / "deploy" / "docker" / "broker.conf" else {}
    assert payment_deadline_hours(environment, monkeypatch) < last_check_hours(load_settings(path, None).settings)


def test_the_demo_asks_about_an_order_once_more_after_its_deadline_for_payment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = load_settings(None, dict(QUICK_CHECKS)).settings
    assert payment_deadline_hours({}, monkeypatch) < last_check_hours(settings)
