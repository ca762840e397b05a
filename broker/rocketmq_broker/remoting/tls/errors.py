"""The errors of TLS, and OpenSSL's errors in words."""

import ssl
from typing import Final

TlsError: Final = ssl.SSLError
"""An error in a handshake or after it."""


class TlsUnusable(Exception):
    """A certificate, a key or a setting that cannot be used; the text names file or setting, on one line, and no password."""


def words_of(error: ssl.SSLError) -> str:
    """Returns OpenSSL's words for the error, without its codes."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = str(error.reason or "the connection was closed").lower().replace("_", " ")
    return f"the peer says: {reason.partition('alert ')[2]}" if "alert " in reason else reason


def is_about_certificate(error: ssl.SSLError) -> bool:
    """Returns whether this side refused the peer's certificate."""
    return isinstance(error, ssl.SSLCertVerificationError)
