"""The stacks of the process's threads, in the form in which RocketMQ's tools show those of Java's clients (UtilAll.jstack)."""

from __future__ import annotations

import sys
import threading
import traceback
from typing import Final

_NAME_WIDTH: Final = 40
_MOST_CHARACTERS: Final = 256 * 1024


def thread_dump() -> str:
    """Returns each thread with its stack, the innermost call first; without the values of variables."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    lines: list[str] = []
    for identifier, frame in sys._current_frames().items():
        name = names.get(identifier, "unknown")
        if lines:
            lines.append("")
        lines.append(f"{name:<{_NAME_WIDTH}}TID: {identifier} STATE: RUNNING")
        calls = reversed(traceback.extract_stack(frame))
        lines += [f"{name:<{_NAME_WIDTH}}{call.name}({call.filename}:{call.lineno})" for call in calls]
    return "\n".join(lines)[:_MOST_CHARACTERS]
