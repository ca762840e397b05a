"""Tests the `messages` command, from its options to its output."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines.commands import command_line
from tests.component.pipelines.test_command_line import AT_MS, run
from tests.unit.pipelines.log_writer import LogWriter


def test_a_table_of_topics_that_no_terminal_shows_is_not_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(command_line, "spark_session", opened)
    topic = "a_topic_with_a_name_that_is_longer_than_any_narrow_terminal_is_wide"
    log = LogWriter(tmp_path / "store")
    log.append(topic, "a", None, AT_MS)
    counted = run("messages", "--store", log.store, "--topic", topic, "--output", tmp_path / "out")
    assert counted.exit_code == 0, counted.output
    assert any(topic in line and "plain" in line for line in counted.stdout.splitlines())
    assert "…" not in counted.stdout
