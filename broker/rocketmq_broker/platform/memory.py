"""The machine's memory, and memory that the kernel allocates page by page."""

import mmap
import os
import sys
from pathlib import Path

if sys.platform == "win32":
    from rocketmq_broker.platform import windows


def zeroed_memory(size: int) -> mmap.mmap:
    """Returns private memory of `size` zero bytes. The kernel allocates each page only when the page is first written."""
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


def physical_memory_bytes() -> int:
    """Returns the size of the machine's memory in bytes."""
    if sys.platform == "win32":
        return windows.physical_memory_bytes()
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_folder() -> Path | None:
    """Returns a folder whose files are in memory, such as Linux's /dev/shm, or None if the system has none."""
    folder = Path("/dev/shm")
    return folder if sys.platform == "linux" and folder.is_dir() else None
