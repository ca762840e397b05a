"""Brings files and the names of files to the disk.

Linux: fdatasync, or fsync where the file's times matter. macOS: F_FULLFSYNC, because fsync leaves the data in the disk's own
cache, from which a power failure takes it. Windows: FlushFileBuffers, which `os.fsync` calls.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rocketmq_broker.platform.flush_helper import sync_data, sync_file

__all__ = ["sync_data", "sync_directory", "sync_file"]


def sync_directory(path: Path) -> None:
    """Syncs the names in a directory. They are on disk on return.

    Windows cannot sync a directory: its file systems write names to their journal by themselves, soon after the call. A power
    failure on Windows may undo the last creations, renames and deletions.
    """
    if sys.platform == "win32":
        return
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file(directory)
    finally:
        os.close(directory)
