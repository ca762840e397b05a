"""RocketMQ's TLS settings, for either end (TlsSystemConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from rocketmq_broker.remoting.tls.errors import TlsUnusable

DEFAULT_CONFIG_FILE: Final = "/etc/rocketmq/tls.properties"
"""A file that is read if it exists, as by RocketMQ's processes. Its settings take precedence."""

_NOT_IN_CONFIG_FILE: Final = ("tls.server.mode", "tls.enable", "tls.config.file")
_BOOLEANS: Final = {"true": True, "false": False}
Kind = TypeVar("Kind", bound=Enum)


class TlsMode(Enum):
    """A server's treatment of connections with and without TLS."""

    DISABLED = "disabled"
    """Closes connections that begin with a TLS handshake."""
    PERMISSIVE = "permissive"
    """Accepts both."""
    ENFORCING = "enforcing"
    """Closes connections that do not begin with a TLS handshake."""


class NeedClientAuth(Enum):
    """The demand for a client's certificate."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The settings `tls.server.*`. Raises TlsUnusable for a combination that cannot work."""

    mode: TlsMode = TlsMode.PERMISSIVE
    cert_path: Path | None = None
    key_path: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    need_client_auth: NeedClientAuth = NeedClientAuth.NONE
    trust_cert_path: Path | None = None
    """The certificates that must have signed those of clients."""
    test_mode: bool = False
    """Whether to use a certificate made at start, which nobody can trust."""

    def __post_init__(self) -> None:
        if self.mode is TlsMode.DISABLED:
            return
        if self.test_mode and self.cert_path is not None:
            raise TlsUnusable("tls.server.certPath and tls.test.mode.enable=true: one or the other")
        if (self.cert_path is None) != (self.key_path is None):
            raise TlsUnusable("tls.server.certPath and tls.server.keyPath: both or none of them")
        if self.need_client_auth is not NeedClientAuth.NONE and self.trust_cert_path is None:
            raise TlsUnusable(
                f"tls.server.need.client.auth={self.need_client_auth.value}: "
                "set tls.server.trustCertPath to the certificates to trust"
            )
        if self.mode is TlsMode.ENFORCING and not self.has_certificate:
            raise TlsUnusable("tls.server.mode=enforcing: set tls.server.certPath and tls.server.keyPath")

    @property
    def has_certificate(self) -> bool:
        """Returns whether a certificate is set, or can be made."""
        return self.cert_path is not None or self.test_mode

    @property
    def files(self) -> list[Path]:
        """Returns the files of certificates and key."""
        return [path for path in (self.cert_path, self.key_path, self.trust_cert_path) if path is not None]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ServerTls:
        """Reads the settings under RocketMQ's names; ignores others. Raises TlsUnusable.

        A named certificate is used; RocketMQ uses it only with tls.test.mode.enable=false.
        """
        cert_path = _path(properties, "tls.server.certPath")
        return cls(
            mode=_one_of(TlsMode, properties, "tls.server.mode", TlsMode.PERMISSIVE),
            cert_path=cert_path,
            key_path=_path(properties, "tls.server.keyPath"),
            key_password=properties.get("tls.server.keyPassword") or None,
            need_client_auth=_one_of(NeedClientAuth, properties, "tls.server.need.client.auth", NeedClientAuth.NONE),
            trust_cert_path=_path(properties, "tls.server.trustCertPath"),
            test_mode=_boolean(properties, "tls.test.mode.enable", cert_path is None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """A client's check of the server's identity, and the client's own. Raises TlsUnusable."""

    trust_cert_path: Path | str | None = None
    """The certificates that must have signed those of servers, as a PEM file; the default is the system's."""
    auth_server: bool = True
    """Whether the server's identity is checked; False, for tests, trusts all servers."""
    check_hostname: bool = True
    """Whether the certificate must name the host or address that was called."""
    cert_path: Path | str | None = None
    key_path: Path | str | None = None
    key_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.cert_path is None) != (self.key_path is None):
            raise TlsUnusable("a client's certificate and its key: both or none of them")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientTls | None:
        """Reads the settings under RocketMQ's names; None unless tls.enable=true. Raises TlsUnusable.

        Unlike RocketMQ's clients it checks the server, unless tls.client.authServer=false or a test mode forbids it.
        """
        if not _boolean(properties, "tls.enable", False):
            return None
        is_test = _boolean(properties, "tls.test.mode.enable", False)
        return cls(
            trust_cert_path=_path(properties, "tls.client.trustCertPath"),
            auth_server=_boolean(properties, "tls.client.authServer", not is_test),
            check_hostname=_boolean(properties, "tls.client.checkHostname", True),
            cert_path=_path(properties, "tls.client.certPath"),
            key_path=_path(properties, "tls.client.keyPath"),
            key_password=properties.get("tls.client.keyPassword") or None,
        )


def of_config_file(properties: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings of a `tls.config.file` that count. As in RocketMQ, it does not decide whether TLS is used."""
    return {name: value for name, value in properties.items() if name.startswith("tls.") and name not in _NOT_IN_CONFIG_FILE}


def _path(properties: Mapping[str, str], name: str) -> Path | None:
    """Returns the path of a setting, `~` resolved. Raises TlsUnusable for the home of an unknown user."""
    text = properties.get(name, "").strip()
    try:
        return Path(text).expanduser() if text else None
    except RuntimeError as error:
        raise TlsUnusable(f"{name}={text}: {error}") from None


def _boolean(properties: Mapping[str, str], name: str, default: bool) -> bool:
    text = properties.get(name, "").strip().lower()
    if not text:
        return default
    if text not in _BOOLEANS:
        raise TlsUnusable(f"{name}={text}: true or false is expected")
    return _BOOLEANS[text]


def _one_of(kinds: type[Kind], properties: Mapping[str, str], name: str, default: Kind) -> Kind:
    text = properties.get(name, "").strip().lower()
    if not text:
        return default
    try:
        return kinds(text)
    except ValueError:
        raise TlsUnusable(f"{name}={text}: one of {', '.join(kind.value for kind in kinds)} is expected") from None
