"""Uses the program openssl to create self-signed certificates for tests (Netty's SelfSignedCertificate)."""

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from rocketmq_broker.remoting.tls.errors import TlsUnusable

_COMMAND: Final = (
    *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    *("-days", "365", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"),
)
_WITHIN_S: Final = 30


class SelfSigned:
    """A context manager that creates a certificate and its key in a temporary directory.

    Only the current user can read the files.
    """

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="rocketmq-tls-")
        self.cert_path = Path(self._directory.name) / "certificate.pem"
        self.key_path = Path(self._directory.name) / "key.pem"

    def __enter__(self) -> "SelfSigned":
        """Creates the certificate and the key. Raises TlsUnusable."""
        files = ("-keyout", str(self.key_path), "-out", str(self.cert_path))
        try:
            made = subprocess.run((*_COMMAND, *files), capture_output=True, text=True, timeout=_WITHIN_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._directory.cleanup()
            raise TlsUnusable(
                f"cannot create a test certificate: openssl is not available ({error}): install it, or set tls.server.certPath"
            ) from None
        if made.returncode:
            self._directory.cleanup()
            reason = (made.stderr.strip().splitlines() or ["no error message"])[-1]
            raise TlsUnusable(f"cannot create a test certificate: openssl failed: {reason}")
        return self

    def __exit__(self, *_: object) -> None:
        """Removes the certificate and the key."""
        self._directory.cleanup()
