"""What can go wrong between two peers."""


class RemotingError(Exception):
    """Base of the errors of this package."""


class ConnectFailed(RemotingError):
    """No connection to the address: nobody listens, or not in time. The request was not sent."""


class HandshakeFailed(ConnectFailed):
    """The TLS handshake failed: the peer speaks no TLS, or does not accept this side's certificate."""


class CertificateRefused(HandshakeFailed):
    """The peer's certificate is not accepted here."""


class ConnectionClosed(RemotingError):
    """The connection ended before the answer came. Whether the peer did what it was asked is unknown."""


class RemotingTimeout(RemotingError):
    """No answer in time. Whether the peer did what it was asked is unknown."""


class TooManyRequests(RemotingError):
    """Too many requests wait for their answers. This one was not sent."""


class StoppedByHook(RemotingError):
    """The program's own RPC hook stopped the request, which was not sent, or its answer."""
