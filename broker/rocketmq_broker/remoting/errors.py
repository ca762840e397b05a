"""Exceptions that connections raise."""


class RemotingError(Exception):
    """Base class of the errors of this package."""


class ConnectFailed(RemotingError):
    """The connection could not be opened, or not within the timeout. The request was not sent."""


class HandshakeFailed(ConnectFailed):
    """The TLS handshake failed: the peer does not use TLS, or refused this end's certificate."""


class CertificateRefused(HandshakeFailed):
    """The peer's certificate was rejected by this end of the connection."""


class ConnectionClosed(RemotingError):
    """The connection ended before the answer. The request may or may not have been executed."""


class RemotingTimeout(RemotingError):
    """No answer arrived in time. The request may or may not have been executed."""


class TooManyRequests(RemotingError):
    """The request was not sent, because too many requests wait for answers."""


class StoppedByHook(RemotingError):
    """The program's RPC hook stopped the request or its answer."""
