"""Tests that this broker stores and sends the same message data as Apache RocketMQ 4.9.7 on each path."""

import asyncio
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from tests.foreign.apache.cluster import apache_rocketmq
from tests.foreign.apache.records.comparison import Comparable, Difference, differences
from tests.foreign.apache.records.intended import TABLE, Intended
from tests.foreign.apache.records.stage import Stage
from tests.foreign.apache.records.ways import CHECK_INTERVAL_MS, CHECK_MAX, WAYS, play

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]

NEVER_MS = "600000"
"""A way is checked early because its messages say so (CHECK_IMMUNITY_TIME_IN_SECONDS), and no other is checked."""


async def _play_on(stages: list[Stage]) -> list[Comparable]:
    try:
        await asyncio.gather(*map(play, stages))
        return [Comparable(stage) for stage in stages]
    finally:
        await asyncio.gather(*(stage.close() for stage in stages))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Difference]]:
    """Returns the differences between both brokers, by path."""
    home = tmp_path_factory.mktemp("records")
    namesrv_port, port, our_namesrv_port, our_port = free_ports(4)
    apache_settings = {
        "NAMESRV_PORT": str(namesrv_port),
        "BROKER_PORT": str(port),
        "TRANSACTION_TIMEOUT_MS": NEVER_MS,
        "CHECK_INTERVAL_MS": str(CHECK_INTERVAL_MS),
        "CHECK_MAX": str(CHECK_MAX),
        "PROPERTIES": "brokerFastFailureEnable=false",
    }
    our_settings = {
        "namesrvListenPort": str(our_namesrv_port),
        "listenPort": str(our_port),
        "transactionTimeOut": NEVER_MS,
        "transactionCheckInterval": str(CHECK_INTERVAL_MS),
        "transactionCheckMax": str(CHECK_MAX),
    }
    with apache_rocketmq(home / "apache", settings=apache_settings), Processes(home / "logs") as processes:
        add_broker(processes, home / "ours", our_settings).start()
        stages = [_stage(port, home / "apache"), _stage(our_port, home / "ours")]
        apaches, ours = asyncio.run(_play_on(stages))
    return {way: list(differences(apaches.ways[way], ours.ways[way])) for way in WAYS}


def _stage(port: int, home: Path) -> Stage:
    return Stage(f"127.0.0.1:{port}", home / "store")


@pytest.mark.parametrize("way", WAYS)
def test_a_message_looks_the_same_on_its_way_save_where_we_mean_it(found: dict[str, list[Difference]], way: str) -> None:
    assert [one for one in found[way] if not any(intended.covers(way, one) for intended in TABLE)] == []


@pytest.mark.parametrize("intended", TABLE, ids=lambda intended: f"{intended.way}: {intended.what}: {intended.field}")
def test_each_difference_that_we_mean_is_there(found: dict[str, list[Difference]], intended: Intended) -> None:
    assert [one for way, all_of_it in found.items() for one in all_of_it if intended.covers(way, one)], intended.reason
