"""Creates TLS contexts that require TLS 1.2 or later, forward secrecy and authenticated ciphers."""

import ssl
from pathlib import Path
from typing import Final

from rocketmq_broker.remoting.tls.errors import TlsUnusable
from rocketmq_broker.remoting.tls.settings import ClientTls

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""The allowed ciphers of TLS 1.2. All ciphers of TLS 1.3 have forward secrecy and are authenticated."""


def new_context(protocol: int) -> ssl.SSLContext:
    """Returns a context without certificates."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    return context


def client_context(settings: ClientTls) -> ssl.SSLContext:
    """Returns the TLS context of a client's connections. Raises TlsUnusable."""
    context = new_context(ssl.PROTOCOL_TLS_CLIENT)
    if not settings.auth_server:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.trust_cert_path is not None:
        load_trusted(context, settings.trust_cert_path)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if not settings.check_hostname:
        context.check_hostname = False
    if settings.cert_path is not None and settings.key_path is not None:
        load_certificate(context, settings.cert_path, settings.key_path, settings.key_password)
    return context


def load_certificate(context: ssl.SSLContext, cert_path: Path | str, key_path: Path | str, password: str | None) -> None:
    """Loads the certificate that the context presents. Raises TlsUnusable with the reason."""
    for path in (cert_path, key_path):
        _check_readable(path)
    try:
        # If no password is passed, OpenSSL prompts for one at the terminal.
        context.load_cert_chain(cert_path, key_path, password=password or "")
    except (ssl.SSLError, ValueError) as error:
        raise TlsUnusable(f"cannot load certificate {cert_path} with key {key_path}: {_reason(error)}") from None


def load_trusted(context: ssl.SSLContext, path: Path | str) -> None:
    """Loads the certificates that the context trusts. Raises TlsUnusable."""
    _check_readable(path)
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as error:
        raise TlsUnusable(f"cannot load the trusted certificates {path}: {_reason(error)}") from None


def _check_readable(path: Path | str) -> None:
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TlsUnusable(f"cannot read {path}: {error.strerror}") from None


def _reason(error: Exception) -> str:
    """Returns a readable reason for OpenSSL's error."""
    known = {
        "KEY_VALUES_MISMATCH": "the key does not match the certificate",
        "NO_CERTIFICATE_OR_CRL_FOUND": "the file contains no certificate",
        "BAD_DECRYPT": "the password of the key is wrong",
    }
    reason = getattr(error, "reason", None)
    if reason is None:
        return "not a certificate and key in PEM format, or the key needs a password"
    return known.get(reason, str(reason).lower().replace("_", " "))
