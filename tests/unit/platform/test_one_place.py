"""Only `rocketmq_broker.platform` handles differences between operating systems: no other module checks the system."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.parsed import parsed

ROOT = Path(__file__).resolve().parents[3]
PACKAGES: Final = (
    "broker/rocketmq_broker",
    "packages/commitlog/rocketmq_commitlog",
    "packages/faststream-rocketmq/faststream_rocketmq",
)
PLACE: Final = ROOT / "broker/rocketmq_broker/platform"
MODULES: Final = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")) if PLACE not in path.parents]


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


SYSTEM_MODULES: Final = words("_winapi ctypes fcntl grp msvcrt nt posix pty pwd resource select spwd syslog termios tty winreg")
"""Modules of the standard library that a system lacks, or whose content depends on it."""
PORTABLE: Final[dict[str, frozenset[str]]] = {
    "os": words("""
        PathLike close cpu_count environ fdopen fsencode fspath fstat getcwd getpid kill listdir lstat makedirs open path pipe
        read replace scandir stat stat_result strerror unlink urandom walk write _exit
        O_CREAT O_EXCL O_RDONLY O_RDWR O_TRUNC O_WRONLY
        """),
    "signal": words("SIGINT SIGTERM SIG_DFL SIG_IGN Signals default_int_handler getsignal signal"),
    "mmap": words("ACCESS_READ mmap"),
}
"""The names of a module that mean the same on each system. Others belong to `rocketmq_broker.platform`."""
NOT_PORTABLE: Final[dict[str, frozenset[str]]] = {
    "platform": words("system mac_ver win32_ver win32_edition libc_ver freedesktop_os_release uname"),
    "sys": words("abiflags getdlopenflags getwindowsversion platform setdlopenflags winver"),
    "socket": words("AF_UNIX SO_REUSEPORT SO_EXCLUSIVEADDRUSE TCP_KEEPIDLE TCP_QUICKACK TCP_USER_TIMEOUT"),
}
METHODS: Final = frozenset({"add_signal_handler", "remove_signal_handler"})
ARGUMENTS: Final = frozenset({"creationflags", "pass_fds", "preexec_fn", "process_group", "user", "umask"})
"""Arguments of a new process that a system refuses. `start_new_session` means nothing on Windows."""


def departures(tree: ast.Module) -> Iterator[str]:
    """Yields the imports and names of a module that exist on one system only."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (f"imports {alias.name}" for alias in names if alias.name.split(".")[0] in SYSTEM_MODULES)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                if module.split(".")[0] in SYSTEM_MODULES:
                    yield f"imports {module}"
                yield from (f"imports {module}.{alias.name}" for alias in names if not is_portable(module, alias.name))
            case ast.Attribute(value=ast.Name(id=module), attr=name) if not is_portable(module, name):
                yield f"uses {module}.{name}"
            case ast.Attribute(attr=name) if name in METHODS:
                yield f"calls {name}"
            case ast.Call(keywords=keywords):
                yield from (f"passes {keyword.arg}" for keyword in keywords if keyword.arg in ARGUMENTS)
            case ast.Constant(value=str(text)) if text.startswith(("/proc", "/sys/", "/dev/")):
                yield f"names {text}"


def is_portable(module: str, name: str) -> bool:
    if module in NOT_PORTABLE:
        return name not in NOT_PORTABLE[module]
    return module not in PORTABLE or name in PORTABLE[module]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_outside_of_the_place_departs(package: str) -> None:
    modules = [path for path in MODULES if ROOT / package in path.parents]
    assert len(modules) >= 5
    found = {str(path.relative_to(ROOT)): sorted(set(departures(parsed(path)))) for path in modules}
    assert {name: departed for name, departed in found.items() if departed} == {}


@pytest.mark.parametrize(
    ("program", "departure"),
    [
        ("import fcntl", "imports fcntl"),
        ("from resource import getrlimit", "imports resource"),
        ("import sys\nif sys.platform == 'win32': pass", "uses sys.platform"),
        ("from sys import platform", "imports sys.platform"),
        ("import os\nos.name", "uses os.name"),
        ("import os\nos.fdatasync(1)", "uses os.fdatasync"),
        ("import os\nos.open('x', os.O_NONBLOCK)", "uses os.O_NONBLOCK"),
        ("import mmap\nmmap.MAP_PRIVATE", "uses mmap.MAP_PRIVATE"),
        ("import signal\nsignal.SIGKILL", "uses signal.SIGKILL"),
        ("import socket\nsocket.SO_REUSEPORT", "uses socket.SO_REUSEPORT"),
        ("loop.add_signal_handler(1, print)", "calls add_signal_handler"),
        ("Popen([], pass_fds=(3,))", "passes pass_fds"),
        ("open('/proc/self/stat')", "names /proc/self/stat"),
    ],
)
def test_a_departure_is_found(program: str, departure: str) -> None:
    assert departure in list(departures(ast.parse(program)))
