"""Kills what its parent started, however the parent ends.

Run as a process of its own (`python -m demo.reaper`) that reads process group ids from its standard input: `+ID` to
remember one, `-ID` to forget it. The end of the input, which also comes when the parent is killed, makes it send SIGKILL to
every group it still remembers.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterable


def groups_left(lines: Iterable[str]) -> set[int]:
    """The groups that were announced and not taken back when the lines end."""
    groups: set[int] = set()
    for line in lines:
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    return groups


def main() -> None:
    """Read to the end, then kill the groups that are still announced."""
    for group in groups_left(sys.stdin):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
