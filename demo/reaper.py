"""Kills the process groups that the parent process started, when the parent process ends.

This module runs as a separate process (`python -m demo.reaper`) and reads process group ids from its standard
input. `+ID` adds a group, and `-ID` removes it. The input ends when the parent exits or is killed. At the end of
the input, the remaining groups are killed with SIGKILL.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def groups_left(lines: Iterable[str]) -> set[int]:
    """Returns the groups that were added and not removed."""
    groups: set[int] = set()
    for line in lines:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    return groups


def main() -> None:
    """Reads the input to its end, then kills the remaining groups."""
    for group in groups_left(sys.stdin):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
