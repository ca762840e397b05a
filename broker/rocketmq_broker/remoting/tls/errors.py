"""The errors of TLS, and readable texts of OpenSSL's errors."""

import ssl
from typing import Final

TlsError: Final = ssl.SSLError
"""An error in a handshake or after it."""


class TlsUnusable(Exception):
    """A certificate, key or setting is invalid. The text has one line with the file or setting, and contains no password."""


def words_of(error: ssl.SSLError) -> str:
    """Returns OpenSSL's error text without its codes."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = str(error.reason or "the connection was closed").lower().replace("_", " ")
    return f"alert from the peer: {reason.partition('alert ')[2]}" if "alert " in reason else reason


def is_about_certificate(error: ssl.SSLError) -> bool:
    """Returns True if this end refused the peer's certificate."""
    return isinstance(error, ssl.SSLCertVerificationError)
