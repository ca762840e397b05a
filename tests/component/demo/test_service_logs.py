"""Tests of the events that are read from consumers' logs."""

from datetime import datetime
from pathlib import Path

import pytest

from demo.scenarios.service_logs import LOOKED_AT_BYTES, MAX_LINES, ServiceLogs

LINE = (
    "2026-01-31 12:00:00,042 ERROR service_runtime.inbox.inbox_listener: [order_id=o1] "
    "message M1 is moved to the dead-letter topic: its body is invalid: total_cents: Field required"
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "credit_service.log"


@pytest.fixture
def logs(log: Path) -> ServiceLogs:
    return ServiceLogs({"credit_service": log})


def test_the_reason_of_a_dead_letter_is_an_event_with_its_time(log: Path, logs: ServiceLogs) -> None:
    log.write_text(f"started\n{LINE}\n{LINE.replace('M1', 'M2')}\n")
    (event,) = logs.events("M1")
    assert event.at_ms == int(datetime(2026, 1, 31, 12).timestamp()) * 1000 + 42
    assert event.what.startswith("credit_service: [order_id=o1] message M1 is moved to the dead-letter topic")
    assert event.on_record == "log of credit_service"
    assert event.arrow is not None
    assert event.arrow.label == "total_cents: Field required"


def test_a_traceback_is_told_by_the_exception(log: Path, logs: ServiceLogs) -> None:
    log.write_text(
        "2026-01-31 12:00:00,042 WARNING x: the listener failed on M1\n"
        "    Traceback (most recent call last):\n      File ...\n    ValueError: no total\nnext line\n"
    )
    (event,) = logs.events("M1")
    assert event.what == "credit_service: the listener failed on M1: ValueError: no total"
    assert event.arrow is not None
    assert event.arrow.label == "an error, see its log"


def test_lines_of_other_kinds_say_nothing(log: Path, logs: ServiceLogs) -> None:
    log.write_text("2026-01-31 12:00:00,042 INFO x: message M1 is credited\nM1\n    M1 ERROR\n")
    assert logs.events("M1") == []


def test_only_the_latest_lines_of_the_end_of_a_log_count(log: Path, logs: ServiceLogs) -> None:
    log.write_text(LINE + "\n" + "x" * LOOKED_AT_BYTES + "\n" + f"{LINE}\n" * (MAX_LINES + 3))
    assert len(logs.events("M1")) == MAX_LINES


def test_a_log_that_is_not_there_says_nothing(logs: ServiceLogs) -> None:
    assert logs.events("M1") == []
