"""Settings that ask soon must not give up soon: each shipped configuration outlasts a long outage of the order database."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config import BrokerSettings, load_settings
from demo.system import QUICK_CHECKS

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = sorted(path for folder in ("docker", "tutorials") for path in (ROOT / folder).rglob("broker.conf"))
AT_LEAST_HOURS = 8


def patience_hours(settings: BrokerSettings) -> float:
    """For how long a producer may answer each check with UNKNOWN before its message is given up."""
    asking_ms = settings.transaction_time_out + settings.transaction_check_max * settings.transaction_check_interval
    return min(asking_ms / 3_600_000, settings.file_reserved_time)


def test_the_configurations_of_compose_and_of_the_tutorials_are_found() -> None:
    assert ROOT / "docker" / "broker.conf" in SHIPPED
    assert ROOT / "tutorials" / "lose-a-commit" / "broker.conf" in SHIPPED


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_configuration_outlasts_an_outage_of_hours(path: Path) -> None:
    assert patience_hours(load_settings(path, None).settings) >= AT_LEAST_HOURS


def test_the_settings_of_the_demo_outlast_an_outage_of_hours() -> None:
    assert patience_hours(load_settings(None, dict(QUICK_CHECKS)).settings) >= AT_LEAST_HOURS
