"""Exceptions that connections raise."""


class RemotingError(Exception):
    """Base class of the errors of this package."""


class ConnectFailed(RemotingError):
    """Raised if the connection could not be opened within the timeout. The request was not sent."""


class HandshakeFailed(ConnectFailed):
    """Raised if the TLS handshake failed because the peer does not use TLS or refused this end's certificate."""


class CertificateRefused(HandshakeFailed):
    """Raised if this end of the connection rejected the peer's certificate."""


class ConnectionClosed(RemotingError):
    """Raised if the connection ended before the response. The request may or may not have been executed."""


class RemotingTimeout(RemotingError):
    """Raised if no response arrived in time. The request may or may not have been executed."""


class TooManyRequests(RemotingError):
    """Raised if a request was not sent because too many requests wait for responses."""


class StoppedByHook(RemotingError):
    """Raised if the program's RPC hook stopped the request or its response."""
