"""Imports modules repeatedly, each time without a feature that some systems lack. Prints the failures as JSON.

The modules are those named as arguments, or all modules of the wheels. If one feature is missing, only the modules
that mention it are imported. If all features are missing, all modules are imported. The standard library and other
libraries are imported first, because they run on each system and check `sys.platform`. O_CLOEXEC and O_NONBLOCK are
not removed, because `platform.files` also checks `sys.platform` before it uses them.
"""

import importlib
import json
import mmap
import os
import pkgutil
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

PACKAGES: Final = ("rocketmq_broker", "rocketmq_commitlog", "faststream_rocketmq")
MODULES: Final = ("fcntl", "grp", "posix", "pwd", "resource", "termios", "tty")
NAMES: Final[dict[ModuleType, tuple[str, ...]]] = {
    os: (
        *("fdatasync", "fork", "getgid", "geteuid", "getuid", "killpg", "sched_getaffinity", "sched_yield", "statvfs", "sysconf"),
        *("O_DIRECTORY", "SEEK_DATA", "SEEK_HOLE", "posix_fadvise", "sendfile", "uname"),
    ),
    mmap: ("MAP_ANONYMOUS", "MAP_PRIVATE", "MAP_SHARED", "PROT_READ"),
    select: ("epoll", "poll"),
    signal: ("SIGHUP", "SIGKILL", "SIGUSR1", "SIG_BLOCK", "pthread_sigmask"),
    socket: ("AF_UNIX", "SO_REUSEPORT", "TCP_QUICKACK", "TCP_USER_TIMEOUT"),
}


def modules_of(packages: tuple[str, ...]) -> list[str]:
    """Returns all modules of the packages except `platform.windows`."""
    found = list(packages)
    for package in packages:
        path = importlib.import_module(package).__path__
        found += [module.name for module in pkgutil.walk_packages(path, f"{package}.")]
    return [name for name in found if name != "rocketmq_broker.platform.windows"]


@contextmanager
def without_module(name: str) -> Iterator[None]:
    before = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before


@contextmanager
def without_name(module: ModuleType, name: str) -> Iterator[None]:
    before = getattr(module, name)
    delattr(module, name)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextmanager
def without(lacks: list[Callable[[], object]]) -> Iterator[None]:
    if not lacks:
        yield
        return
    with lacks[0](), without(lacks[1:]):  # type: ignore[attr-defined]
        yield


def failures(names: list[str]) -> dict[str, str]:
    """Imports the modules again. Returns the errors by module."""
    for name in names:
        sys.modules.pop(name, None)
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
    return failed


def naming(lack: str, sources: dict[str, str]) -> list[str]:
    """Returns the modules whose source contains the last part of `lack`."""
    last = lack.rpartition(".")[2]
    return [name for name, source in sources.items() if last in source]


def main() -> None:
    sys.path.insert(0, os.getcwd())
    names = sys.argv[1:] or modules_of(PACKAGES)
    lacks: dict[str, Callable[[], object]] = {name: lambda name=name: without_module(name) for name in MODULES}
    for module, attributes in NAMES.items():
        for name in attributes:
            if hasattr(module, name):
                lacks[f"{module.__name__}.{name}"] = lambda module=module, name=name: without_name(module, name)
    if sys.argv[1:]:
        for name in MODULES:
            importlib.import_module(name)
    else:
        import django
        from django.conf import settings

        settings.configure(INSTALLED_APPS=["rocketmq_broker.databases.django"])
        django.setup()
    if failed := failures(names):
        sys.exit(f"without anything taken away: {failed}")
    sources = {name: Path(str(sys.modules[name].__file__)).read_text(encoding="utf-8") for name in names}
    told = {}
    for lack, without_it in lacks.items():
        with without_it():  # type: ignore[attr-defined]
            if failed := failures(naming(lack, sources)):
                told[lack] = failed
    with without(list(lacks.values())):
        if failed := failures(names):
            told["all of them"] = failed
    print(json.dumps({"modules": len(names), "tried": list(lacks), "failed": told}))


if __name__ == "__main__":
    main()
