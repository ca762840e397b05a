"""Tests of log lines with malicious values, and of the limit on repeated log lines."""

import io
import logging
import subprocess
import sys
from typing import Any

import pytest

from rocketmq_broker.logs import BoundedHandler, LineFormatter
from rocketmq_broker.logs.flood import Flood

FORGED = "g\n2026-11-22 09:00:00,000 ERROR broker: the disk is lost\x1b[2J\u202e"


def record(message: str, *args: object, line: int = 1, error: BaseException | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    return logging.LogRecord("broker", logging.WARNING, "/src/file.py", line, message, args, info)


class Log:
    """A log handler that writes to memory, with a clock that the test controls."""

    def __init__(self, max_lines: int = 3) -> None:
        self.now_s = 0.0
        self._stream = io.StringIO()
        self.handler = BoundedHandler(self._stream, flood=Flood(max_lines, 60.0), now_s=lambda: self.now_s)

    def write(self, message: str, *args: object, **more: Any) -> None:
        self.handler.handle(record(message, *args, **more))

    @property
    def lines(self) -> list[str]:
        return [line.partition(": ")[2] for line in self._stream.getvalue().splitlines()]


def test_a_name_with_a_newline_does_not_begin_a_line() -> None:
    text = LineFormatter().format(record("group %s is refused", FORGED))

    assert text.isprintable()
    assert "g\\n2026" in text


def test_a_message_that_was_formatted_before_is_escaped_too() -> None:
    assert LineFormatter().format(record(f"group {FORGED} is refused")).isprintable()


def test_the_text_of_an_error_begins_no_line_either() -> None:
    try:
        raise ValueError(f"{FORGED}\f\x85\r")
    except ValueError as error:
        lines = LineFormatter().format(record("failed", error=error)).split("\n")

    assert len(lines) > 3
    assert all(line.startswith("    ") for line in lines[1:])
    assert all(line.isprintable() for line in lines)


def test_an_error_with_a_million_lines_is_cut() -> None:
    text = LineFormatter().format(record("failed", error=ValueError("x\n" * 1_000_000)))

    assert text.count("\n") < 250


def test_a_long_name_does_not_hide_what_follows_it() -> None:
    text = LineFormatter().format(record("group %s is refused: %s", "g" * 1_000_000, "it is too long"))

    assert len(text) < 2_000
    assert text.endswith("is refused: it is too long")


def test_a_long_list_and_a_long_error_are_cut_as_well() -> None:
    assert len(LineFormatter().format(record("%s of %r", ["g"] * 1_000_000, ValueError("x" * 1_000_000)))) < 3_000


def test_a_record_whose_values_do_not_fit_is_still_written() -> None:
    assert "%d of %d ('x',)" in LineFormatter().format(record("%d of %d", "x"))


def test_a_flood_of_one_kind_is_counted_and_summed_up_when_its_minute_is_over() -> None:
    log = Log()
    for number in range(5_000):
        log.write("refused: group %s", f"g{number}", line=1)
    log.write("another kind", line=2)
    log.now_s = 61.0
    log.write("another kind", line=2)

    assert log.lines == [
        "refused: group g0",
        "refused: group g1",
        "refused: group g2",
        "more lines of file.py:1 are not written but counted: limit of lines in a minute reached",
        "another kind",
        "4997 lines of file.py:1 were not written in 61 s; the first one: refused: group g3",
        "another kind",
    ]


def test_lines_of_a_kind_are_written_again_after_the_minute() -> None:
    log = Log()
    for _ in range(5):
        log.write("refused")
    log.now_s = 60.0
    log.write("refused once more")

    assert log.lines[-2:] == ["2 lines of file.py:1 were not written in 60 s; the first one: refused", "refused once more"]


def test_what_is_only_counted_is_written_when_logging_ends() -> None:
    log = Log()
    for _ in range(5):
        log.write("refused")
    log.handler.close()

    assert log.lines[-1] == "2 lines of file.py:1 were not written in 0 s; the first one: refused"


def test_a_slow_drip_of_one_kind_is_never_left_out() -> None:
    log = Log()
    for number in range(100):
        log.now_s = number * 21.0
        log.write("refused")

    assert log.lines == ["refused"] * 100


@pytest.mark.parametrize(
    "ends_by",
    ["raise ValueError(text)", "import threading; threading.Thread(target=int, args=(text,)).start()"],
)
def test_an_unexpected_end_is_logged_in_safe_lines(ends_by: str) -> None:
    start = "import logging; from rocketmq_broker.logs import log_to_stderr; log_to_stderr(logging.INFO)"
    program = f"{start}; text = {FORGED!r}; {ends_by}"
    lines = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False).stderr.splitlines()

    assert " CRITICAL " in lines[0]
    assert all(line.startswith("    ") and line.isprintable() for line in lines[1:])
