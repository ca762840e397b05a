"""Opens listening sockets on each address of a host name."""

import errno
import logging
import socket
from typing import Any, Final

from service_runtime.starting.start import CannotStart

_TRIES_FOR_A_COMMON_PORT: Final = 10
_ADDRESS_IS_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_BACKLOG: Final = 1024

logger = logging.getLogger(__name__)


def listen_on(host: str, port: int) -> list[socket.socket]:
    """Returns one socket for each address of the host, all on one port. Port 0 chooses a port that is free on all of them.

    `localhost` is usually 127.0.0.1 and ::1, and clients may try only one of them. An address that the machine does not have (::1
    without IPv6) is skipped with a warning. Raises CannotStart.
    """
    addresses = _addresses(host, port)
    for last_try in [False] * (_TRIES_FOR_A_COMMON_PORT - 1) + [True]:
        try:
            return _listen_on_all(host, port, addresses)
        except OSError as error:
            if port or last_try or error.errno != errno.EADDRINUSE:
                raise CannotStart(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    raise AssertionError("unreachable: the last try returns or raises")


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, tuple[Any, ...]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CannotStart(f"cannot listen on {host}:{port}: {reason}") from None
    return list(dict.fromkeys((family, address) for family, _, _, _, address in found))


def _listen_on_all(host: str, port: int, addresses: list[tuple[socket.AddressFamily, tuple[Any, ...]]]) -> list[socket.socket]:
    listening: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, (address, _, *scope) in addresses:
            common_port = listening[0].getsockname()[1] if listening else port
            try:
                listening.append(_listen(family, (address, common_port, *scope)))
            except OSError as error:
                if error.errno not in _ADDRESS_IS_NOT_HERE:
                    raise
                missing = error
                logger.warning(
                    "not listening on %s's address %s, which this machine does not have: %s", host, address, error.strerror
                )
    except OSError:
        for listener in listening:
            listener.close()
        raise
    if not listening and missing is not None:
        raise missing
    return listening


def _listen(family: socket.AddressFamily, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
