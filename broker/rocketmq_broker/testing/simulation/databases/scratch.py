"""Folders for the databases of simulated worlds, one for each interpreter."""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from rocketmq_broker.platform.memory import memory_folder


@cache
def scratch_folder() -> Path:
    """Returns this interpreter's folder for databases, in memory if the system supports it."""
    folder = tempfile.mkdtemp(prefix=_prefix(os.getpid()), dir=memory_folder())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def remove_scratch_of(pid: int) -> None:
    """Removes the folder of a process that was killed, which could not remove it itself."""
    for folder in (memory_folder() or Path(tempfile.gettempdir())).glob(f"{_prefix(pid)}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(pid: int) -> str:
    return f"simulated-{pid}-"
