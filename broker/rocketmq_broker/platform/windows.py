# ruff: noqa: E402
"""Calls of Windows API functions that Python does not provide. Only `rocketmq_broker.platform` imports this module, on Windows.

Each function raises OSError with the errno for the Windows error.
"""

import sys

assert sys.platform == "win32"

import ctypes
import msvcrt
import os
from ctypes import wintypes
from pathlib import Path
from typing import Final

_ERROR_HANDLE_EOF: Final = 38
_ERROR_LOCK_VIOLATION: Final = 33
_ERROR_IO_PENDING: Final = 997
_LOCKFILE_FAIL_IMMEDIATELY: Final = 1
_LOCKFILE_EXCLUSIVE_LOCK: Final = 2
_FILE_READ_ATTRIBUTES: Final = 0x80
_FILE_SHARE_ALL: Final = 7
_OPEN_EXISTING: Final = 3
_FILE_FLAG_BACKUP_SEMANTICS: Final = 0x0200_0000
_FSCTL_SET_SPARSE: Final = 0x0009_00C4
_FILE_END_OF_FILE_INFO: Final = 6
_INVALID_HANDLE: Final = ctypes.c_void_p(-1).value


class _Overlapped(ctypes.Structure):
    """Windows' OVERLAPPED structure, with the position of a read or write. The handle's current position is ignored."""

    _fields_ = [
        ("internal", ctypes.c_void_p),
        ("internal_high", ctypes.c_void_p),
        ("offset", wintypes.DWORD),
        ("offset_high", wintypes.DWORD),
        ("event", wintypes.HANDLE),
    ]


class _MemoryStatus(ctypes.Structure):
    """Windows' MEMORYSTATUSEX structure, with the sizes of the machine's memory."""

    _fields_ = [
        ("length", wintypes.DWORD),
        ("load", wintypes.DWORD),
        *((name, ctypes.c_ulonglong) for name in ("physical", "physical_free", "page_file", "page_file_free")),
        *((name, ctypes.c_ulonglong) for name in ("virtual", "virtual_free", "extended_free")),
    ]


_KERNEL: Final = ctypes.WinDLL("kernel32", use_last_error=True)
for _name, _result, _arguments in (
    ("ReadFile", wintypes.BOOL, (wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p, ctypes.c_void_p)),
    ("WriteFile", wintypes.BOOL, (wintypes.HANDLE, ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p, ctypes.c_void_p)),
    ("SetFileInformationByHandle", wintypes.BOOL, (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)),
    ("DeviceIoControl", wintypes.BOOL, (
        *(wintypes.HANDLE, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD),
        *(ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p, ctypes.c_void_p),
    )),
    ("CreateFileW", wintypes.HANDLE, (
        *(wintypes.LPCWSTR, wintypes.DWORD, wintypes.DWORD, ctypes.c_void_p, wintypes.DWORD, wintypes.DWORD, wintypes.HANDLE),
    )),
    ("LockFileEx", wintypes.BOOL, (wintypes.HANDLE, *(wintypes.DWORD,) * 4, ctypes.c_void_p)),
    ("UnlockFile", wintypes.BOOL, (wintypes.HANDLE, *(wintypes.DWORD,) * 4)),
    ("GlobalMemoryStatusEx", wintypes.BOOL, (ctypes.c_void_p,)),
):  # fmt: skip
    getattr(_KERNEL, _name).restype = _result
    getattr(_KERNEL, _name).argtypes = _arguments


def read_at(file: int, length: int, position: int) -> bytes:
    """Reads at most `length` bytes at a position. Returns fewer bytes at the end of the file."""
    data, count = ctypes.create_string_buffer(length), wintypes.DWORD()
    where = _at(position)
    is_read = _KERNEL.ReadFile(msvcrt.get_osfhandle(file), data, length, ctypes.byref(count), ctypes.byref(where))
    if not is_read and ctypes.get_last_error() != _ERROR_HANDLE_EOF:
        raise _failure()
    return data.raw[: count.value]


def write_at(file: int, data: bytes | bytearray | memoryview, position: int) -> int:
    """Writes bytes at a position. Returns the number of bytes written."""
    content, count = bytes(data), wintypes.DWORD()
    where = _at(position)
    if not _KERNEL.WriteFile(msvcrt.get_osfhandle(file), content, len(content), ctypes.byref(count), ctypes.byref(where)):
        raise _failure()
    return count.value


def _at(position: int) -> _Overlapped:
    return _Overlapped(offset=position & 0xFFFF_FFFF, offset_high=position >> 32)


def set_length(file: int, length: int) -> None:
    """Sets the file's length. An added part contains zeros. It occupies no disk space if the file system supports sparse files.

    `os.ftruncate` would write the zeros to disk.
    """
    handle, count, end = msvcrt.get_osfhandle(file), wintypes.DWORD(), ctypes.c_longlong(length)
    _KERNEL.DeviceIoControl(handle, _FSCTL_SET_SPARSE, None, 0, None, 0, ctypes.byref(count), None)
    if not _KERNEL.SetFileInformationByHandle(handle, _FILE_END_OF_FILE_INFO, ctypes.byref(end), ctypes.sizeof(end)):
        raise _failure()


def lock_first_byte(file: int) -> bool:
    """Locks the first byte until `file` is closed. Returns False if another handle has locked it."""
    return _lock(file, _LOCKFILE_EXCLUSIVE_LOCK)


def is_first_byte_locked(file: int) -> bool:
    """Returns True if another handle has locked the first byte. Briefly locks the byte itself, with a shared lock."""
    if not _lock(file, 0):
        return True
    if not _KERNEL.UnlockFile(msvcrt.get_osfhandle(file), 0, 0, 1, 0):
        raise _failure()
    return False


def _lock(file: int, flags: int) -> bool:
    where = _at(0)
    if _KERNEL.LockFileEx(msvcrt.get_osfhandle(file), flags | _LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, ctypes.byref(where)):
        return True
    if ctypes.get_last_error() not in (_ERROR_LOCK_VIOLATION, _ERROR_IO_PENDING):
        raise _failure()
    return False


def open_folder(path: Path) -> int:
    """Opens a folder, which `os.open` cannot do. Other processes may still read, write, rename and delete it."""
    handle = _KERNEL.CreateFileW(
        str(path), _FILE_READ_ATTRIBUTES, _FILE_SHARE_ALL, None, _OPEN_EXISTING, _FILE_FLAG_BACKUP_SEMANTICS, None
    )
    if handle == _INVALID_HANDLE:
        raise _failure()
    return msvcrt.open_osfhandle(handle, os.O_RDONLY)


def physical_memory_bytes() -> int:
    """Returns the size of the machine's memory in bytes."""
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if not _KERNEL.GlobalMemoryStatusEx(ctypes.byref(status)):
        raise _failure()
    return int(status.physical)


def _failure() -> OSError:
    return ctypes.WinError(ctypes.get_last_error())
