"""Runs the blocks of a chapter in one shell, as a reader would, and compares their output with the chapter's."""

import doctest
import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sybil import Example

BLOCK_TIMEOUT_S: Final = 180.0
LAST_WORDS_S: Final = 3.0
"""The time limit in seconds for the shell and its children to end after SIGTERM."""
_DONE: Final = "__block_done__"


class Shell:
    """A bash process that runs all blocks of a chapter. Background processes of the blocks end when it is closed."""

    def __init__(self, folder: Path) -> None:
        """Starts bash in `folder`. Removes the environment variables that configure the services."""
        # Each pytest deletes old folders of the others, and warns if two do so at the same time.
        self._temporary = TemporaryDirectory(prefix="chapter-", ignore_cleanup_errors=True)
        settings = ("NAMESRV_ADDR", "ORDER_DATABASE_URL", "CREDIT_DATABASE_URL", "REDIS_URL", "FAILPOINTS")
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name not in settings}
            | {"PYTEST_DEBUG_TEMPROOT": self._temporary.name},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, block: str) -> str:
        """Runs a block and returns its output.

        Raises AssertionError if the block's last command fails, or if the block does not end within BLOCK_TIMEOUT_S seconds.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{block}\necho {_DONE} $?\n")
        self._process.stdin.flush()
        printed: list[str] = []
        deadline = time.monotonic() + BLOCK_TIMEOUT_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"timed out after {BLOCK_TIMEOUT_S:.0f} s:\n{block}\nprinted:\n{''.join(printed)}") from None
            before, done, status = line.partition(_DONE)
            printed.append(before)
            if done:
                output = "".join(printed)
                assert int(status) == 0, f"exit status {status.strip()}:\n{block}\nprinted:\n{output}"
                return output

    def close(self) -> None:
        """Stops the shell and all its children with SIGTERM, and after LAST_WORDS_S seconds with SIGKILL."""
        for end in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, end)
            except ProcessLookupError:
                break
            deadline = time.monotonic() + (LAST_WORDS_S if end is signal.SIGTERM else 0)
            while time.monotonic() < deadline and self._has_members():
                time.sleep(0.02)
        self._process.wait()
        self._temporary.cleanup()

    def _has_members(self) -> bool:
        """Returns True if the shell or one of its children is still running."""
        self._process.poll()  # reads the exit code, because an ended process exists until its exit code is read
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


def run_block(example: Example) -> None:
    """Runs a ```bash block and keeps its output for `compare_output`."""
    example.namespace["output"] = example.namespace["shell"].run(example.parsed)


def compare_output(example: Example) -> str | None:
    """Compares a ```text block with the output of the block before it. `...` in the block matches any text.

    Returns a description of the difference, or None if they match.
    """
    printed, expected = example.namespace["output"].strip() + "\n", example.parsed.strip() + "\n"
    if doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE):
        return None
    return f"expected:\n{expected}\nprinted:\n{printed}"
