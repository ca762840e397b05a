"""Tests that this broker stores and sends the same message data as Apache RocketMQ 4.9.7 on each path."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.foreign.apache.records.comparison import Comparable, Difference, differences
from tests.foreign.apache.records.intended import TABLE, Intended
from tests.foreign.apache.records.stage import Stage, both_stages
from tests.foreign.apache.records.ways import CHECK_INTERVAL_MS, CHECK_MAX, WAYS, play

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(600)]

NEVER_MS = 600_000
"""A way is checked early because its messages say so (CHECK_IMMUNITY_TIME_IN_SECONDS), and no other is checked."""


async def _play_on(stages: Sequence[Stage]) -> list[Comparable]:
    try:
        await asyncio.gather(*map(play, stages))
        return [Comparable(stage) for stage in stages]
    finally:
        await asyncio.gather(*(stage.close() for stage in stages))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Difference]]:
    """Returns the differences between both brokers, by path."""
    with both_stages(
        tmp_path_factory.mktemp("records"),
        transaction_timeout_ms=NEVER_MS,
        check_interval_ms=CHECK_INTERVAL_MS,
        check_max=CHECK_MAX,
    ) as stages:
        apaches, ours = asyncio.run(_play_on(stages))
    return {way: list(differences(apaches.ways[way], ours.ways[way])) for way in WAYS}


@pytest.mark.parametrize("way", WAYS)
def test_a_message_looks_the_same_on_its_way_save_where_we_mean_it(found: dict[str, list[Difference]], way: str) -> None:
    assert [one for one in found[way] if not any(intended.covers(way, one) for intended in TABLE)] == []


@pytest.mark.parametrize("intended", TABLE, ids=lambda intended: f"{intended.way}: {intended.what}: {intended.field}")
def test_each_difference_that_we_mean_is_there(found: dict[str, list[Difference]], intended: Intended) -> None:
    assert [one for way, all_of_it in found.items() for one in all_of_it if intended.covers(way, one)], intended.reason
