"""Creates certificate authorities and certificates for tests with the program openssl."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, in PEM."""

    cert_path: Path
    key_path: Path


class Authority:
    """A certificate authority. A client accepts its certificates if the client trusts `cert_path`."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.cert_path = directory / f"{name}.pem"
        self._key_path = directory / f"{name}.key"
        _openssl("req", "-x509", "-nodes", *_EC, "-days", "2", "-subj", f"/CN={name}", *_out(self.cert_path, self._key_path))

    def sign(self, name: str, *, alt_names: str = "IP:127.0.0.1,DNS:localhost", password: str | None = None) -> Certificate:
        """Creates and returns a certificate with this name. It is valid for the addresses in `alt_names`."""
        made = Certificate(self._directory / f"{name}.pem", self._directory / f"{name}.key")
        request = self._directory / f"{name}.csr"
        extensions = self._directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alt_names}\n")
        protection = ("-nodes",) if password is None else ("-passout", f"pass:{password}")
        _openssl("req", "-new", *protection, *_EC, "-subj", f"/CN={name}", *_out(request, made.key_path))
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.cert_path, "-CAkey", self._key_path, "-CAcreateserial"),
            *("-days", "2", "-extfile", extensions, "-out", made.cert_path),
        )
        return made


def _out(path: Path, key_path: Path) -> tuple[str | Path, ...]:
    return ("-out", path, "-keyout", key_path)


def _openssl(*words: str | Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no program openssl: apt-get install openssl")
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)
