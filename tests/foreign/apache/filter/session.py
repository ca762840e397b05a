"""Sends expressions, line by line, to RocketMQ's own filter module in a JVM."""

import base64
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.foreign.apache.cluster import PEER

PROGRAM = Path(__file__).with_name("SqlFilterSession.java")
CLASS_PATH_SECONDS = 600
"""The first look downloads the jars."""
AT_A_TIME = 50


class ApachesFilter:
    """RocketMQ's own filter module, which evaluates expressions."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answers(self, questions: Sequence[tuple[str, bytes]]) -> list[str]:
        """Returns TRUE, FALSE, UNKNOWN, FAILED or ILLEGAL for each expression with its encoded properties."""
        return [answer for batch in _batched(questions) for answer in self._ask(batch)]

    def _ask(self, questions: Sequence[tuple[str, bytes]]) -> list[str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.writelines(f"{_base64(expression.encode())} {_base64(properties)}\n" for expression, properties in questions)
        stdin.flush()
        return [stdout.readline().strip() for _ in questions]


def _batched(questions: Sequence[tuple[str, bytes]]) -> Iterator[Sequence[tuple[str, bytes]]]:
    """Yields batches that are small enough for the pipes, so that neither process blocks the other."""
    for start in range(0, len(questions), AT_A_TIME):
        yield questions[start : start + AT_A_TIME]


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@contextmanager
def apaches_filter() -> Iterator[ApachesFilter]:
    """Runs the JVM during the block, and yields the filter."""
    found = subprocess.run([PEER, "classpath"], check=True, stdout=subprocess.PIPE, text=True, timeout=CLASS_PATH_SECONDS)
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", found.stdout.strip(), str(PROGRAM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ApachesFilter(process)
        finally:
            process.kill()
