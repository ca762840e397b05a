"""Settings of a name server in its own process, from a file and from the command line (RocketMQ's NamesrvConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rocketmq_broker.acl import AccountMistake
from rocketmq_broker.acl.remote_address import RemoteAddresses, parse_remote_addresses
from rocketmq_broker.protocol.java_properties import parse_properties
from rocketmq_broker.remoting.tls import DEFAULT_CONFIG_FILE, ServerTls, TlsUnusable, of_config_file

_HIGHEST_PORT: Final = 65_535
_MAX_PORT_LENGTH: Final = 5


class SettingsMistake(Exception):
    """Raised if the settings file cannot be read or a value is invalid. The error message has one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerSettings:
    """The settings of a name server."""

    port: int = 9876
    bind_address: str = "127.0.0.1"
    admin_addresses: RemoteAddresses | None = None
    """Addresses from which operators may change data, in addition to this machine."""
    kv_config_path: Path = field(default_factory=lambda: Path("~/namesrv/kvConfig.json").expanduser())
    tls: ServerTls = field(default_factory=lambda: ServerTls(test_mode=True))


def load_settings(path: Path | None, overrides: Mapping[str, object] | None = None) -> NameServerSettings:
    """Returns the settings in a namesrv.conf, or the defaults if the path is None.

    Values in `overrides` that are not None take precedence. Raises SettingsMistake.
    """
    source = str(path) if path is not None else "command line"
    properties = _read(path) if path is not None else {}
    properties |= {name: str(value) for name, value in (overrides or {}).items() if value is not None}
    tls_file = properties.get("tls.config.file")
    if tls_file is not None or Path(DEFAULT_CONFIG_FILE).exists():
        properties |= of_config_file(_read(Path(tls_file or DEFAULT_CONFIG_FILE)))
    port = properties.get("listenPort", "9876")
    if not port.isdecimal() or len(port) > _MAX_PORT_LENGTH or int(port) > _HIGHEST_PORT:
        raise SettingsMistake(f"{source}: listenPort must be between 0 and {_HIGHEST_PORT}, not {port}")
    try:
        tls = ServerTls.from_properties(properties)
    except TlsUnusable as error:
        raise SettingsMistake(f"{source}: {error}") from None
    defaults = NameServerSettings()
    kv_config_path = properties.get("kvConfigPath")
    return NameServerSettings(
        port=int(port),
        bind_address=properties.get("bindAddress", defaults.bind_address),
        kv_config_path=_path(source, "kvConfigPath", kv_config_path) if kv_config_path else defaults.kv_config_path,
        admin_addresses=_addresses(source, properties.get("adminAddresses", "")),
        tls=tls,
    )


def _addresses(source: str, text: str) -> RemoteAddresses | None:
    try:
        return parse_remote_addresses(text) if text.strip() else None
    except AccountMistake as error:
        raise SettingsMistake(f"{source}: adminAddresses: {error}") from None


def _path(source: str, name: str, text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # the home directory of an unknown user
        raise SettingsMistake(f"{source}: {name}={text}: {error}") from None


def _read(path: Path) -> dict[str, str]:
    try:
        return {name: value.strip() for name, value in parse_properties(path.read_text(encoding="utf-8")).items()}
    except OSError as error:
        raise SettingsMistake(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsMistake(f"{path}: not a text file in UTF-8") from None
    except ValueError as error:  # a path with a NUL character
        raise SettingsMistake(f"{path}: {error}") from None
