"""Tests Spark's settings for small and large books, on one machine and on a cluster."""

import re
from pathlib import Path

import pytest

from pipelines.spark import class_archive
from pipelines.spark.session import settings


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "classes.jsa"
    monkeypatch.setenv(class_archive.OTHER, str(path))
    return path


def test_small_books_get_one_task_and_a_jvm_that_is_quick_to_start() -> None:
    small = settings("local[4]", is_small=True)
    assert (small["spark.sql.shuffle.partitions"], small["spark.default.parallelism"]) == ("1", "1")
    assert "-XX:TieredStopAtLevel=1" in small["spark.driver.extraJavaOptions"]


def test_small_books_are_planned_without_a_question_to_the_jvm_for_each_line_of_ours() -> None:
    asked = {"spark.sql.dataFrameQueryContext.enabled", "spark.python.sql.dataFrameDebugging.enabled"}
    assert {settings("local[4]", is_small=True)[name] for name in asked} == {"false"}
    assert not asked & settings("local[4]").keys()


def test_large_books_get_the_whole_compiler_and_the_memory_asked_for() -> None:
    large = settings("local[4]", memory="6g")
    assert "TieredStopAtLevel" not in large["spark.driver.extraJavaOptions"]
    assert int(large["spark.sql.shuffle.partitions"]) >= 4
    assert large["spark.driver.memory"] == "6g"


def test_a_cluster_keeps_its_own_jvm_settings() -> None:
    assert "spark.driver.extraJavaOptions" not in settings("spark://host:7077", is_small=True)


@pytest.mark.parametrize("master", [None, "local[4]", "spark://host:7077"])
@pytest.mark.parametrize("is_small", [True, False])
def test_no_secret_is_a_setting_because_settings_are_arguments_of_the_jvm(master: str | None, is_small: bool) -> None:
    sparks_own_rule = re.compile(r"secret|password|token|access[.]?key", re.IGNORECASE)
    assert not [name for name in settings(master, is_small=is_small, memory="6g") if sparks_own_rule.search(name)]


def test_on_one_machine_workers_are_forked_by_our_daemon_and_on_a_cluster_by_spark_s() -> None:
    assert settings("local[4]")["spark.python.daemon.module"] == "pipelines.sources.spark_workers"
    assert "spark.python.daemon.module" not in settings("spark://host:7077")


def test_an_archive_of_classes_is_used_where_there_is_one(archive: Path) -> None:
    assert class_archive.options() == []
    archive.write_bytes(b"")
    assert class_archive.options() == [f"-XX:SharedArchiveFile={archive}"]


def test_a_run_that_writes_the_archive_uses_none(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.write_bytes(b"")
    monkeypatch.setenv(class_archive.WRITE, "fresh.jsa")
    assert class_archive.options() == ["-XX:ArchiveClassesAtExit=fresh.jsa"]


def test_no_archive_is_used_if_the_environment_names_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(class_archive.OTHER, "")
    assert class_archive.path() is None
    assert class_archive.options() == []
