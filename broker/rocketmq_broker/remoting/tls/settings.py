"""RocketMQ's TLS settings of servers and clients (TlsSystemConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from rocketmq_broker.remoting.tls.errors import TlsUnusable

DEFAULT_CONFIG_FILE: Final = "/etc/rocketmq/tls.properties"
"""The path of a settings file that is read if it exists, as in RocketMQ. Its settings take precedence over other settings."""

_NOT_IN_CONFIG_FILE: Final = ("tls.server.mode", "tls.enable", "tls.config.file")
_BOOLEANS: Final = {"true": True, "false": False}
Kind = TypeVar("Kind", bound=Enum)


class TlsMode(Enum):
    """The modes that determine whether a server accepts connections with TLS and without TLS."""

    DISABLED = "disabled"
    """Closes connections that start with a TLS handshake."""
    PERMISSIVE = "permissive"
    """Accepts connections with and without TLS."""
    ENFORCING = "enforcing"
    """Closes connections that do not start with a TLS handshake."""


class NeedClientAuth(Enum):
    """The modes that determine whether a server requests client certificates."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRE = "require"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTls:
    """The settings `tls.server.*`. Raises TlsUnusable for an invalid combination."""

    mode: TlsMode = TlsMode.PERMISSIVE
    cert_path: Path | None = None
    key_path: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    need_client_auth: NeedClientAuth = NeedClientAuth.NONE
    trust_cert_path: Path | None = None
    """The path of the trusted certificates with which the server verifies clients."""
    test_mode: bool = False
    """True to use a self-signed certificate, which is created when it is first required."""

    def __post_init__(self) -> None:
        if self.mode is TlsMode.DISABLED:
            return
        if self.test_mode and self.cert_path is not None:
            raise TlsUnusable("tls.server.certPath and tls.test.mode.enable=true are both set: set only one")
        if (self.cert_path is None) != (self.key_path is None):
            raise TlsUnusable("tls.server.certPath and tls.server.keyPath must be set together")
        if self.need_client_auth is not NeedClientAuth.NONE and self.trust_cert_path is None:
            raise TlsUnusable(f"tls.server.need.client.auth={self.need_client_auth.value} requires tls.server.trustCertPath")
        if self.mode is TlsMode.ENFORCING and not self.has_certificate:
            raise TlsUnusable("tls.server.mode=enforcing requires tls.server.certPath and tls.server.keyPath")

    @property
    def has_certificate(self) -> bool:
        """Returns True if a certificate is set or can be created."""
        return self.cert_path is not None or self.test_mode

    @property
    def files(self) -> list[Path]:
        """Returns the files of the certificates and the key."""
        return [path for path in (self.cert_path, self.key_path, self.trust_cert_path) if path is not None]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "ServerTls":
        """Reads the settings from properties with RocketMQ's names, and ignores other properties. Raises TlsUnusable.

        A configured certificate is always used. RocketMQ uses it only with tls.test.mode.enable=false.
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
    """TLS settings of a client. Raises TlsUnusable for an invalid combination."""

    trust_cert_path: Path | str | None = None
    """The path of a PEM file with the trusted certificates for verifying servers. The default is the system's certificates."""
    auth_server: bool = True
    """True to verify the server's certificate. False trusts all servers, and is only meant for tests."""
    check_hostname: bool = True
    """True to verify that the server's certificate is valid for the host or address of the connection."""
    cert_path: Path | str | None = None
    key_path: Path | str | None = None
    key_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.cert_path is None) != (self.key_path is None):
            raise TlsUnusable("cert_path and key_path (tls.client.certPath, tls.client.keyPath) must be set together")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> "ClientTls | None":
        """Reads the settings from properties with RocketMQ's names. Returns None unless tls.enable=true. Raises TlsUnusable.

        Unlike RocketMQ's clients, verifies the server unless tls.client.authServer=false or the test mode is enabled.
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
    """Returns the `tls.*` settings that a `tls.config.file` may set. As in RocketMQ, the file cannot enable or disable TLS."""
    return {name: value for name, value in properties.items() if name.startswith("tls.") and name not in _NOT_IN_CONFIG_FILE}


def _path(properties: Mapping[str, str], name: str) -> Path | None:
    """Returns the path in a setting, with `~` expanded. Raises TlsUnusable for the home directory of an unknown user."""
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
        raise TlsUnusable(f"{name} must be true or false, not {text}")
    return _BOOLEANS[text]


def _one_of(kinds: type[Kind], properties: Mapping[str, str], name: str, default: Kind) -> Kind:
    text = properties.get(name, "").strip().lower()
    if not text:
        return default
    try:
        return kinds(text)
    except ValueError:
        raise TlsUnusable(f"{name} must be one of {', '.join(kind.value for kind in kinds)}, not {text}") from None
