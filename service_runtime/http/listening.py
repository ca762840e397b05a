"""Opens listening sockets on each address of a host name."""

import errno
import logging
import os
import socket
from contextlib import ExitStack
from typing import Final

from service_runtime.starting.start import CannotStart

_TRIES_FOR_A_COMMON_PORT: Final = 10
_ADDRESS_IS_NOT_HERE: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)

logger = logging.getLogger(__name__)


def listen_on(host: str, port: int, tries: int = _TRIES_FOR_A_COMMON_PORT) -> list[socket.socket]:
    """Returns one socket for each address of the host, all on one port. Port 0 chooses a port that is free on all of them.

    `localhost` is usually 127.0.0.1 and ::1, and clients may try only one of them. An address that the machine does not have (::1
    without IPv6) is skipped with a warning. Raises CannotStart.
    """
    try:
        return _listen_on_all(host, port)
    except (OSError, UnicodeError) as error:
        if port == 0 and tries > 1 and getattr(error, "errno", None) == errno.EADDRINUSE:
            return listen_on(host, port, tries - 1)
        raise CannotStart(f"cannot listen on {host}:{port}: {getattr(error, 'strerror', None) or error}") from None


def _listen_on_all(host: str, port: int) -> list[socket.socket]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening: list[socket.socket] = []
    missing: OSError | None = None
    with ExitStack() as closing:
        for family, (address, _, *scope) in dict.fromkeys((family, address) for family, _, _, _, address in found):
            common_port = listening[0].getsockname()[1] if listening else port
            try:
                listening.append(closing.enter_context(socket.create_server((address, common_port, *scope), family=family)))
            except OSError as error:
                # create_server adds the address to the text.
                missing = OSError(error.errno, os.strerror(error.errno or 0))
                if error.errno not in _ADDRESS_IS_NOT_HERE:
                    raise missing from None
                logger.warning(
                    "not listening on %s's address %s, which this machine does not have: %s", host, address, missing.strerror
                )
        if missing is not None and not listening:
            raise missing
        closing.pop_all()
    return listening
