"""Syncs files and directories to the disk.

Linux: fdatasync, or fsync where the file's times matter. macOS: F_FULLFSYNC, because fsync leaves the data in the disk's
cache, which a power failure clears. Windows: FlushFileBuffers, which `os.fsync` calls.
"""

import os
import sys
from pathlib import Path

from rocketmq_broker.platform.flush_helper import sync_data, sync_file

__all__ = ["sync_data", "sync_directory", "sync_file"]


def sync_directory(path: Path) -> None:
    """Syncs the names in a directory. On return, the names are on disk.

    Does nothing on Windows, which cannot sync a directory. Its file systems write names to their journal after a short delay, so
    a power failure may undo the last creations, renames and deletions.
    """
    if sys.platform == "win32":
        return
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_file(directory)
    finally:
        os.close(directory)
