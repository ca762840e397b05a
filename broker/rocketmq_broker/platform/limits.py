"""The limit on open files, which also limits connections, and the reservation of a port."""

import contextlib
import socket
import sys
from typing import Final

with contextlib.suppress(ModuleNotFoundError):  # Windows has no such module
    import resource

_UNLIMITED: Final = 1 << 31
_OPEN_MAX: Final = 10240
"""The greatest limit that macOS accepts, whatever its maximum is (OPEN_MAX of its <sys/syslimits.h>)."""


def max_open_files() -> int:
    """Returns the maximum number of files that this process may have open.

    Except on Windows, every file descriptor is less than this number. Windows has no limit, and a handle can be any
    number.
    """
    if sys.platform == "win32":
        return _UNLIMITED
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit if limit != resource.RLIM_INFINITY else _UNLIMITED


def raise_max_open_files() -> None:
    """Raises the limit on open files to the allowed maximum.

    The usual limit of 1024 on Linux, and of 256 on macOS, would also limit the number of connections.
    """
    if sys.platform == "win32":
        return
    current, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    if sys.platform != "darwin":
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
    elif current < _OPEN_MAX:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(_OPEN_MAX, maximum), maximum))


def reserve_port(host: str, port: int) -> socket.socket | None:
    """Returns a socket that keeps the port for servers of this program until the socket is closed. Raises OSError.

    The socket never listens: connections are refused while no server listens. Other programs that ask for any free port do not
    get this port. A server binds the port before the reservation or after it, and listens after it. Returns None on Windows,
    where a second socket could take over the port of a listening server.
    """
    if sys.platform == "win32":
        return None
    reserved = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((host, port))
    except OSError:
        reserved.close()
        raise
    return reserved


def allow_reservation(bound: socket.socket) -> None:
    """Makes `reserve_port` possible for a port that was bound without SO_REUSEADDR. Does nothing on Windows."""
    if sys.platform != "win32":
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
