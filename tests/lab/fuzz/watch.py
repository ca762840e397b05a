"""Detects what must not happen during fuzzing: tracebacks in the log, a blocked event loop, growing memory."""

# ruff: noqa: E501

import asyncio
import gc
import logging
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

MAX_MS = 50.0
"""The longest that one frame may keep the loop, by the processor time of the loop's thread: others share the machine."""


@dataclass(slots=True)
class Finding:
    """A kind of misbehavior, with the first input that caused it."""

    what: str
    example: str
    count: int = 1


@dataclass(slots=True)
class Watch:
    """The number of inputs and the findings of a fuzzer run."""

    inputs: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    slow: dict[str, tuple[float, str]] = field(default_factory=dict)
    """Request code -> the longest that one of its frames took, in ms, and that frame."""
    errors: Counter[str] = field(default_factory=Counter)
    """Lines of level ERROR without a traceback: worth reading, and no finding."""
    answers: Counter[str] = field(default_factory=Counter)
    """By server and response code: whether the frames reach what is behind the decoder."""
    worst_ms: float = 0.0
    most_growth_mib: float = 0.0
    current: str = ""
    own_ms: float = 0.0
    """Of the frame that is looked at: what the fuzzer itself took to make it."""
    _rss_before: int = 0

    def found(self, what: str, example: str) -> None:
        """Adds a finding, or counts it again."""
        known = self.findings.get(what)
        if known is None:
            self.findings[what] = Finding(what, example)
        else:
            known.count += 1

    @contextmanager
    def frame(self, target: str, code: str, frame: bytes) -> Iterator[None]:
        """Counts one input and measures its time. Log records during the block are attributed to the input."""
        self.inputs[target] += 1
        shown = frame[:600].hex() + (f"... ({len(frame)} bytes)" if len(frame) > 600 else "")
        self.current = f"{target} {code} {shown}"
        # Garbage of the fuzzer itself is not collected on the time of a frame.
        gc.disable()
        self.own_ms = 0.0
        before = time.thread_time()
        try:
            yield
        except Exception as error:
            self.found(_signature(error), f"{self.current}\n{traceback.format_exc()}")
        took_ms = (time.thread_time() - before) * 1000 - self.own_ms
        gc.enable()
        self.worst_ms = max(self.worst_ms, took_ms)
        key = f"{target} {code}"
        if took_ms > self.slow.get(key, (5.0, ""))[0]:
            self.slow[key] = took_ms, self.current

    def note_memory(self) -> None:
        """Records the process's memory the first time, and its growth after that."""
        rss = psutil.Process().memory_info().rss
        self._rss_before = self._rss_before or rss
        self.most_growth_mib = max(self.most_growth_mib, (rss - self._rss_before) / 2**20)

    @contextmanager
    def logs(self) -> Iterator[None]:
        """Replaces all log handlers while the block runs, and checks the records."""
        handler, root = _Reader(self), logging.getLogger()
        handlers, level = root.handlers[:], root.level
        root.handlers[:] = [handler]
        root.setLevel(logging.WARNING)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: self._unhandled(context))
        try:
            yield
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)
            loop.set_exception_handler(None)

    def _unhandled(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.found(_signature(error) if error else str(context.get("message")), f"{self.current}\n{context!r}")

    def report(self) -> str:
        """Returns the results as text."""
        lines = [
            f"{sum(self.inputs.values()):,} inputs: " + ", ".join(f"{name} {count:,}" for name, count in self.inputs.items())
        ]
        lines.append(f"{len(self.findings)} findings, {sum(found.count for found in self.findings.values())} times")
        lines.append(
            f"longest for one frame: {self.worst_ms:.1f} ms of processor time; memory grew by {self.most_growth_mib:.0f} MiB at most"
        )
        lines.append("answers: " + ", ".join(f"{name} x {count:,}" for name, count in self.answers.most_common(25)))
        slowest = sorted(self.slow.items(), key=lambda item: -item[1][0])[:12]
        lines += [f"  {took_ms:.1f} ms  {key}" for key, (took_ms, _) in slowest]
        lines += [f"  {count} x {line}" for line, count in self.errors.most_common(20)]
        lines += [f"FINDING {found.count} x {found.what}\n{found.example}" for found in self.findings.values()]
        return "\n".join(lines)


class _Reader(logging.Handler):
    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            text = "".join(traceback.format_exception(record.exc_info[1]))
            self._watch.found(
                _signature(record.exc_info[1]), f"{record.getMessage()[:300]}\n{self._watch.current}\n{text[-3000:]}"
            )
        elif record.levelno >= logging.ERROR:
            self._watch.errors[f"{record.filename}:{record.lineno} {str(record.msg)[:100]}"] += 1


def _signature(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-3:]))
    return f"{type(error).__name__} at {place}"
