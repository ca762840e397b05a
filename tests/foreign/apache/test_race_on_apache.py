"""Tests of the race on Apache's brokers: lost COMMITs, a killed broker, and a broker that does not start."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tutorials.race.__main__ import app
from tutorials.race.running import play_cell

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("fault", "orders", "seed"), [("commit-lost", 2, 19), ("restart-of-all", 2, 4)])
@pytest.mark.release
def test_this_kits_way_loses_nothing_on_apaches_broker(fault: str, orders: int, seed: int) -> None:
    figures = play_cell("with-barrier-on-apache", fault, orders, seed)
    assert figures.struck > 0
    assert figures.stored > 0
    assert (figures.missing, figures.phantom) == (0, 0)


@pytest.mark.release
def test_rocketmq_5_before_5_4_delivers_committed_orders_again_and_the_unique_key_keeps_credits_right() -> None:
    apaches = play_cell("with-barrier-on-apache-5", "none", 3, 1)
    ours = play_cell("with-barrier", "none", 3, 1)
    assert (apaches.stored, apaches.missing, apaches.phantom) == (3, 0, 0)
    assert apaches.doubled > 0
    assert ours.doubled == 0


def test_a_broker_that_does_not_start_ends_the_race_with_what_it_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    maven = tmp_path / "mvn"
    maven.write_text("#!/bin/sh\necho 'Maven Central cannot be reached'\nexit 1\n")
    maven.chmod(0o755)
    for name, value in {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "JARS": str(tmp_path / "jars"),
        "HOME": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    ended = CliRunner().invoke(app, ["--cell", "with-barrier-on-apache/none", "--apache", "1"])
    assert ended.exit_code == 1
    assert "the race failed: Apache RocketMQ 4.9.7 did not start" in ended.output
    assert "Maven Central cannot be reached" in ended.output
