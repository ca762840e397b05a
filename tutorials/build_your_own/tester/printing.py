"""Prints verdicts. A failed verdict shows the expected result, the actual result, and where to read more."""

import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from rocketmq_broker.message.text.printable import printable
from tutorials.build_your_own.curriculum import STAGES, Stage
from tutorials.build_your_own.tester.failed import Compared, Failed
from tutorials.build_your_own.tester.hex_dump import frame_lines, hex_lines
from tutorials.build_your_own.tester.timeline import Event, Kind
from tutorials.build_your_own.tester.verdict import Verdict

WIDTH: Final = 120
_TEXT_WIDTH: Final = 96
_LABEL_WIDTH: Final = 11
_LAST_LINES: Final = 14
_OFTEN: Final = 3
"""An exchange that occurs at least this many times in a row is shown only once."""
_MAX_LINE_LENGTH: Final = 160
_MAX_FIELD_LENGTH: Final = 24
"""The maximum number of bytes of a field to show."""


class Printer:
    """Prints verdicts to a console."""

    def __init__(self, console: Console | None = None, *, shows_bytes: bool = False) -> None:
        """Creates a printer.

        With `shows_bytes` a timeline shows the bytes of all events, otherwise only those of the last exchange.
        """
        self._console = console or Console(width=WIDTH, highlight=False, soft_wrap=True)
        self._shows_bytes = shows_bytes

    def verdict(self, verdict: Verdict, *, is_short: bool = False) -> None:
        """Prints a stage's verdict: one line if it passed or with `is_short`, otherwise all details."""
        took = f"{verdict.took_ms / 1000:.1f} s"
        title = f"{verdict.stage.number:>2}  {verdict.stage.title:<22}"
        if verdict.failure is None:
            self._line(f"{title}passed  {len(verdict.held)} of {len(verdict.held)} claims hold, {took}", "green")
        elif is_short:
            self._line(f"{title}FAILED  {verdict.failure.claim.sentence}", "red")
        else:
            self._line(f"{title}FAILED  after {took}", "bold red")
            self._failure(verdict)

    def timeline(self, verdict: Verdict) -> None:
        """Prints all events of a stage."""
        for line in _event_lines(verdict.events, shows_bytes=self._shows_bytes):
            self._line(line)

    def summary(self, verdicts: Sequence[Verdict], command: str) -> None:
        """Prints how many stages passed, and what to do next."""
        passed = [verdict for verdict in verdicts if verdict.is_passed]
        failed = [verdict.stage for verdict in verdicts if not verdict.is_passed]
        self._line("")
        self._line(f"{len(passed)} of {len(verdicts)} stages passed.", "bold" if failed else "bold green")
        if not failed:
            following = verdicts[-1].stage.number + 1
            found = [stage for stage in STAGES if stage.number == following]
            self._line(f"Next: stage {following}, {shown_path(found[0])}" if found else "Your broker passes all stages.")
        elif len(verdicts) > 1:
            self._line(f"To run one stage: {_tester()} --stage {failed[-1].number} -- {command}")
        else:
            self._line(
                f"To show all bytes and keep its files: {_tester()} --stage {failed[0].number} --bytes --keep FOLDER -- {command}"
            )

    def _failure(self, verdict: Verdict) -> None:
        assert verdict.failure is not None
        claim, failed = verdict.failure.claim, verdict.failure.failed
        self._line("")
        for held in verdict.held:
            self._line(f"    ✓ {held.sentence}", "green")
        self._line(f"    ✗ {claim.sentence}", "bold red")
        self._line("")
        self._labelled("wanted", failed.wanted, "green")
        self._labelled("got", failed.got, "red")
        self._fields(failed)
        for hint in (*failed.hints, claim.hint):
            if hint:
                self._labelled("hint", hint)
        self._labelled("read", shown_path(verdict.stage))
        self._labelled("our code", claim.ours)
        self._labelled("Apache's", claim.apache)
        self._line("")
        self._line("    What happened (ms since the stage began)")
        lines = list(_event_lines(verdict.events, shows_bytes=self._shows_bytes))
        for line in lines if self._shows_bytes else lines[-_LAST_LINES:]:
            self._line(f"    {line}")
        if not self._shows_bytes and verdict.events[-1].kind in (Kind.SENT, Kind.RECEIVED):
            self._last_exchange(verdict.events)
        if verdict.output:
            self._line("")
            self._line("    Your broker printed")
            for line in verdict.output.splitlines():
                self._line(f"      {textwrap.shorten(line, _MAX_LINE_LENGTH, placeholder=' …')}", "dim")
        self._line("")

    def _last_exchange(self, events: Sequence[Event]) -> None:
        """Prints the bytes of the last request and of the last response."""
        for kind, title in ((Kind.SENT, "The last frame to your broker"), (Kind.RECEIVED, "The last frame from your broker")):
            last = next((event for event in reversed(events) if event.kind is kind and event.data), None)
            if last is not None:
                self._line("")
                self._line(f"    {title}: {last.text}")
                for line in frame_lines(last.data):
                    self._line(f"      {line}", "dim")

    def _fields(self, failed: Failed) -> None:
        if not failed.fields:
            return
        self._line("")
        self._line(f"    {failed.place}")
        width = max(len("wanted"), *(len(field.name) for field in failed.fields))
        for field in failed.fields:
            for line, style in _field_lines(field, width):
                self._line(f"      {line}", style)
        self._line("")

    def _labelled(self, label: str, text: str, style: str = "") -> None:
        lines = textwrap.wrap(printable(text), _TEXT_WIDTH, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            self._line(f"    {label if number == 0 else '':<{_LABEL_WIDTH}}{line}", style)

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(printable(text), style=style))


def _tester() -> str:
    """Returns the command that runs the tester with this interpreter."""
    interpreter = Path(sys.executable)
    shown = interpreter.relative_to(Path.cwd()) if interpreter.is_relative_to(Path.cwd()) else interpreter
    return f"{shown} -m tutorials.build_your_own test"


def shown_path(stage: Stage) -> str:
    """Returns the path of a stage's text, relative to the root of the checkout."""
    return str(stage.text.relative_to(stage.text.parents[3]))


def _field_lines(field: Compared, width: int) -> Iterator[tuple[str, str]]:
    got = _shown(field.got)
    if field.is_right:
        yield f"  {field.name:<{width}}  {got}", "dim"
        return
    yield f"✗ {field.name:<{width}}  {got}{_as_number(field.got)}", "red"
    yield f"  {'wanted':>{width}}  {_shown(field.wanted)}{_as_number(field.wanted)}", "green"


def _shown(data: bytes) -> str:
    return (data[:_MAX_FIELD_LENGTH].hex(" ") + (" …" if len(data) > _MAX_FIELD_LENGTH else "")) or "(no byte)"


def _as_number(data: bytes) -> str:
    return f"  = {int.from_bytes(data, signed=True)}" if len(data) in (1, 2, 4, 8) else ""


def _event_lines(events: Sequence[Event], *, shows_bytes: bool) -> Iterator[str]:
    """Yields the lines of all events. Shows repeated exchanges, such as polls, only once."""
    at = 0
    while at < len(events):
        exchange = _exchange(events, at)
        times = 1
        while exchange and _exchange(events, at + 2 * times) == exchange:
            times += 1
        is_repeated = times >= _OFTEN
        for event in events[at : at + (2 if is_repeated else 1)]:
            yield from _lines_of(event, shows_bytes=shows_bytes)
        if is_repeated:
            yield f"        … and again, {times} times in all"
        at += 2 * times if is_repeated else 1


def _exchange(events: Sequence[Event], at: int) -> tuple[str, str] | None:
    """Returns the texts of the request and the response at position `at`, without the varying numbers.

    Returns None if there is no such pair of events.
    """
    pair = events[at : at + 2]
    if [event.kind for event in pair] != [Kind.SENT, Kind.RECEIVED]:
        return None
    return _without_numbers(pair[0].text), _without_numbers(pair[1].text)


def _lines_of(event: Event, *, shows_bytes: bool) -> Iterator[str]:
    yield f"{event.at_ms:>6}  {event.kind.value} {event.text}"
    if shows_bytes and event.data:
        lines = frame_lines(event.data) if event.kind in (Kind.SENT, Kind.RECEIVED) else hex_lines(event.data)
        yield from (f"          {line}" for line in lines)


def _without_numbers(text: str) -> str:
    return re.sub(r"opaque \d+", "opaque", text)
