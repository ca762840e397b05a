"""Exceptions of TLS, and readable messages for OpenSSL's errors."""

import ssl
from typing import Final

TlsError: Final = ssl.SSLError
"""An error during or after a TLS handshake."""


class TlsUnusable(Exception):
    """Raised if a certificate, key or setting is invalid.

    The error message has one line, which names the file or setting and contains no password.
    """


def words_of(error: ssl.SSLError) -> str:
    """Returns OpenSSL's error message without its codes."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    reason = str(error.reason or "the connection was closed").lower().replace("_", " ")
    return f"alert from the peer: {reason.partition('alert ')[2]}" if "alert " in reason else reason


def is_about_certificate(error: ssl.SSLError) -> bool:
    """Returns True if the error means that this end rejected the peer's certificate."""
    return isinstance(error, ssl.SSLCertVerificationError)
