"""TLS contexts of servers. The certificate is reloaded when its files change (RocketMQ's FileWatchService)."""

import asyncio
import logging
import ssl
from typing import Final

from rocketmq_broker.remoting.tls.contexts import load_certificate, load_trusted, new_context
from rocketmq_broker.remoting.tls.errors import TlsUnusable
from rocketmq_broker.remoting.tls.handshakes import Handshakes
from rocketmq_broker.remoting.tls.self_signed import SelfSigned
from rocketmq_broker.remoting.tls.settings import NeedClientAuth, ServerTls, TlsMode

LOOK_EVERY_S: Final = 1.0

_VERIFY_MODES: Final = {
    NeedClientAuth.NONE: ssl.CERT_NONE,
    NeedClientAuth.OPTIONAL: ssl.CERT_OPTIONAL,
    NeedClientAuth.REQUIRE: ssl.CERT_REQUIRED,
}
_Stamp = tuple[tuple[int, int, int] | None, ...]

logger = logging.getLogger(__name__)


class ServerContexts:
    """The TLS context of all ports of a process. Only new connections use a reloaded certificate."""

    def __init__(self, settings: ServerTls) -> None:
        """Loads the certificate and the key, if there are any. Raises TlsUnusable."""
        self.handshakes = Handshakes()
        """The unfinished handshakes."""
        self._settings = settings
        self._current: ssl.SSLContext | None = None
        self._failure: TlsUnusable | None = None
        self._making = asyncio.Lock()
        self._stamp = self._look()
        if settings.mode is not TlsMode.DISABLED and settings.cert_path is not None:
            self._current = _read(settings)

    @property
    def mode(self) -> TlsMode:
        """Returns the mode, which determines whether connections with and without TLS are accepted."""
        return self._settings.mode

    @property
    def current(self) -> ssl.SSLContext | None:
        """Returns the context for new connections. Returns None without a certificate or before a test certificate is created."""
        return self._current

    async def made(self) -> ssl.SSLContext:
        """Returns the context. Creates a test certificate first, if one is required. Raises TlsUnusable."""
        async with self._making:
            if self._current is None:
                if not self._settings.test_mode:
                    raise TlsUnusable("no server certificate: set tls.server.certPath and tls.server.keyPath")
                if self._failure is not None:
                    raise self._failure
                try:
                    self._current = await asyncio.to_thread(_make_for_tests)
                except TlsUnusable as error:
                    self._failure = error  # it would fail again, and each attempt starts a process
                    raise
                logger.warning("TLS uses a self-signed test certificate: set tls.server.certPath in production")
            return self._current

    async def follow(self) -> None:
        """Checks the files every second, and reloads them when they have changed. Runs until it is cancelled.

        Returns at once if TLS is disabled.
        """
        while self.mode is not TlsMode.DISABLED:
            await asyncio.sleep(LOOK_EVERY_S)
            self._follow_once()

    def _follow_once(self) -> None:
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._current = _read(self._settings)
        except TlsUnusable as error:
            # Possibly only one file of a pair has been replaced yet. The other one will change the stamp again.
            logger.warning("cannot load the changed certificate; the previous one stays in use: %s", error)
        else:
            logger.warning("reloaded certificate %s", self._settings.cert_path)

    def _look(self) -> _Stamp:
        """Returns the state of the files. Any change of a file changes the state."""
        if self._settings.mode is TlsMode.DISABLED or self._settings.cert_path is None:
            return ()
        stamps: list[tuple[int, int, int] | None] = []
        for path in self._settings.files:
            try:
                stat = path.stat()
            except OSError:
                stamps.append(None)
            else:
                stamps.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(stamps)


def _read(settings: ServerTls) -> ssl.SSLContext:
    assert settings.cert_path is not None
    assert settings.key_path is not None
    context = _new_context()
    load_certificate(context, settings.cert_path, settings.key_path, settings.key_password)
    context.verify_mode = _VERIFY_MODES[settings.need_client_auth]
    if settings.trust_cert_path is not None:
        load_trusted(context, settings.trust_cert_path)
    return context


def _make_for_tests() -> ssl.SSLContext:
    with SelfSigned() as made:
        context = _new_context()
        load_certificate(context, made.cert_path, made.key_path, None)
        return context


def _new_context() -> ssl.SSLContext:
    """Returns a context that offers HTTP/2 through ALPN, as gRPC clients require."""
    context = new_context(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["h2"])
    return context
