"""What RocketMQ's TLS settings say, for either end (TlsSystemConfig)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, TypeVar

from rocketmq_broker.remoting.tls.errors import TlsUnusable

DEFAULT_CONFIG_FILE: Final = "/etc/rocketmq/tls.properties"
"""Read if it is there, as RocketMQ's processes read it. What it says counts more than what is said elsewhere."""

_NOT_IN_CONFIG_FILE: Final = ("tls.server.mode", "tls.enable", "tls.config.file")
_BOOLEANS: Final = {"true": True, "false": False}
Kind = TypeVar("Kind", bound=Enum)


class TlsMode(Enum):
    """What a server does with either kind of connection."""

    DISABLED = "disabled"
    """It closes those that begin with a TLS handshake."""
    PERMISSIVE = "permissive"
    """It takes both."""
    ENFORCING = "enforcing"
    """It closes those that do not."""


class NeedClientAuth(Enum):
    """Whether a client has to show a certificate."""

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
    """The certificates that clients' ones must come from."""
    test_mode: bool = False
    """Whether to use a certificate made for the occasion, which nobody can trust."""

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
        """Whether there is one to show, or one can be made."""
        return self.cert_path is not None or self.test_mode

    @property
    def files(self) -> list[Path]:
        """The files that it consists of."""
        return [path for path in (self.cert_path, self.key_path, self.trust_cert_path) if path is not None]

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ServerTls:
        """The settings under RocketMQ's names; others are passed over. Raises TlsUnusable.

        Unlike RocketMQ, which needs tls.test.mode.enable=false for it, a certificate that is named is used.
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
    """How a client makes sure of whom it talks to, and who it is itself. Raises TlsUnusable."""

    trust_cert_path: Path | str | None = None
    """The certificates that servers' ones must come from, as a PEM file; the system's own unless given."""
    auth_server: bool = True
    """False trusts whoever answers: for tests."""
    check_hostname: bool = True
    """Whether the certificate must be for the name or address that was called."""
    cert_path: Path | str | None = None
    key_path: Path | str | None = None
    key_password: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if (self.cert_path is None) != (self.key_path is None):
            raise TlsUnusable("a client's certificate and its key: both or none of them")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> ClientTls | None:
        """The settings under RocketMQ's names, or None unless tls.enable=true. Raises TlsUnusable.

        Unlike RocketMQ's clients this one makes sure of the server, unless tls.client.authServer=false or a test mode say not to.
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
    """What counts of a `tls.config.file`. As in RocketMQ it does not say whether to use TLS at all."""
    return {name: value for name, value in properties.items() if name.startswith("tls.") and name not in _NOT_IN_CONFIG_FILE}


def _path(properties: Mapping[str, str], name: str) -> Path | None:
    """Raises TlsUnusable for the home of a user whom nobody knows."""
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
