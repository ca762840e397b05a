"""The errors between two peers."""


class RemotingError(Exception):
    """Base of the errors of this package."""


class ConnectFailed(RemotingError):
    """A failed connection: nobody listens, or not in time. The request was not sent."""


class HandshakeFailed(ConnectFailed):
    """A failed TLS handshake: the peer has no TLS, or does not accept this side's certificate."""


class CertificateRefused(HandshakeFailed):
    """A certificate of the peer that this side does not accept."""


class ConnectionClosed(RemotingError):
    """A connection that ended before the answer. Whether the peer carried out the request is unknown."""


class RemotingTimeout(RemotingError):
    """A missing answer. Whether the peer carried out the request is unknown."""


class TooManyRequests(RemotingError):
    """A request that was not sent, because too many wait for their answers."""


class StoppedByHook(RemotingError):
    """A request that the program's own RPC hook stopped before it left, or whose answer it stopped."""
