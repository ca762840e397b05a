"""All settings of the broker, with their defaults (RocketMQ's BrokerConfig, MessageStoreConfig and NettyServerConfig)."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, field

from rocketmq_broker.config.errors import ConfigError
from rocketmq_broker.config.without_effect import WITHOUT_EFFECT
from rocketmq_broker.message.text.printable import printable
from rocketmq_broker.protocol.java_properties import parse_properties
from rocketmq_broker.remoting.tls import DEFAULT_CONFIG_FILE, ClientTls, ServerTls, TlsUnusable, of_config_file

Port = Annotated[int, Meta(ge=0, le=65535)]
PortOrNone = Annotated[int, Meta(ge=-1, le=65535)]
"""The type of a port number, or -1 for no port."""
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=127, pattern=r"^[%|a-zA-Z0-9_.-]+$")]
Milliseconds = NotNegative
Percent = Annotated[int, Meta(ge=10, le=95)]
DelayLevels = Annotated[str, Meta(pattern=r"^\d{1,9}[smhd]( +\d{1,9}[smhd])*$")]
MetricsLabel = Annotated[str, Meta(pattern=r"^([a-zA-Z_]\w*:[^:,]+(,[a-zA-Z_]\w*:[^:,]+)*)?$")]
HoursOfDay = Annotated[str, Meta(pattern=r"^\d{1,2}(;\d{1,2})*$")]

CONSUME_QUEUE_UNIT_BYTES = 20
MAX_FRAME_BYTES = 16 * 1024 * 1024

OTHER_NAMES = {
    "mappedFileSizeCommitLog": "mapedFileSizeCommitLog",
    "mappedFileSizeConsumeQueue": "mapedFileSizeConsumeQueue",
}
"""Maps alternative spellings of properties to the names that RocketMQ uses."""

HOSTS = frozenset({"bindAddress", "brokerIP1", "metricsPromExporterHost"})
"""The properties whose value is a host name or address."""

NOT_SUPPORTED = frozenset({"enableDLegerCommitLog", "duplicationEnable"})
"""The properties that must not be true. Ignoring them would silently disable the requested replication."""


class BrokerSettings(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All properties of broker.conf. A field's name in camel case is RocketMQ's property name unless `name` is given."""

    # identity and addresses
    broker_name: Name = "broker-a"
    broker_cluster_name: Name = "DefaultCluster"
    broker_id: Annotated[int, Meta(ge=0, le=0)] = 0
    broker_role: Literal["ASYNC_MASTER", "SYNC_MASTER"] = "ASYNC_MASTER"
    broker_ip1: str = field(default="127.0.0.1", name="brokerIP1")
    listen_port: Port = 10911
    bind_address: str = "127.0.0.1"
    namesrv_addr: str = ""
    namesrv_listen_port: Port = 9876
    grpc_server_port: PortOrNone = -1
    register_name_server_period: Milliseconds = 30_000
    server_max_connections: Positive = 20_000
    server_max_buffered_bytes: Annotated[int, Meta(ge=2 * MAX_FRAME_BYTES)] = 256 * 1024 * 1024
    busy_poll_micros: Annotated[int, Meta(ge=0, le=10_000)] = 300
    region_id: str = "DefaultRegion"
    trace_on: bool = True

    # permissions and limits of clients
    broker_permission: Annotated[int, Meta(ge=0, le=7)] = 6
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    default_topic_queue_nums: Positive = 8
    max_topic_num: Positive = 10_000
    max_subscription_group_num: Positive = 5_000
    cluster_topic_enable: bool = True
    broker_topic_enable: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: Name = "RMQ_SYS_TRACE_TOPIC"
    reject_transaction_message: bool = False
    notify_consumer_ids_changed_enable: bool = True
    store_reply_message_enable: bool = True
    enable_property_filter: bool = False
    long_polling_enable: bool = True
    short_polling_time_mills: Milliseconds = 1000
    max_message_size: Annotated[int, Meta(ge=1, le=MAX_FRAME_BYTES - 64 * 1024)] = 4 * 1024 * 1024
    message_delay_level: DelayLevels = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"

    # accounts
    acl_enable: bool = False
    rocketmq_home: str = ""
    plain_acl_file: str = field(default="conf/plain_acl.yml", name="rocketmq.acl.plain.file")

    # TLS; rocketmq_broker.remoting.tls parses these texts
    tls_server_mode: str = field(default="permissive", name="tls.server.mode")
    tls_server_cert_path: str = field(default="", name="tls.server.certPath")
    tls_server_key_path: str = field(default="", name="tls.server.keyPath")
    tls_server_key_password: str = field(default="", name="tls.server.keyPassword")
    tls_server_need_client_auth: str = field(default="none", name="tls.server.need.client.auth")
    tls_server_trust_cert_path: str = field(default="", name="tls.server.trustCertPath")
    tls_test_mode_enable: str = field(default="", name="tls.test.mode.enable")
    tls_config_file: str = field(default=DEFAULT_CONFIG_FILE, name="tls.config.file")
    tls_enable: bool = field(default=False, name="tls.enable")
    tls_client_trust_cert_path: str = field(default="", name="tls.client.trustCertPath")
    tls_client_auth_server: str = field(default="", name="tls.client.authServer")
    tls_client_check_hostname: str = field(default="", name="tls.client.checkHostname")
    tls_client_cert_path: str = field(default="", name="tls.client.certPath")
    tls_client_key_path: str = field(default="", name="tls.client.keyPath")
    tls_client_key_password: str = field(default="", name="tls.client.keyPassword")

    # transactions
    transaction_time_out: Milliseconds = 6_000
    transaction_check_interval: Positive = 60_000
    transaction_check_answer_time_out: Positive = 6_000
    transaction_check_max: Positive = 15

    # the store
    store_path_root_dir: str = "~/store"
    store_path_commit_log: str = ""
    flush_disk_type: Literal["SYNC_FLUSH", "ASYNC_FLUSH"] = "SYNC_FLUSH"
    flush_interval_commit_log: Positive = 500
    sync_flush_timeout: Positive = 5_000
    maped_file_size_commit_log: Annotated[int, Meta(ge=64 * 1024)] = 1024 * 1024 * 1024
    maped_file_size_consume_queue: Annotated[int, Meta(ge=CONSUME_QUEUE_UNIT_BYTES)] = 300_000 * CONSUME_QUEUE_UNIT_BYTES
    max_hash_slot_num: Positive = 5_000_000
    max_index_num: Annotated[int, Meta(ge=2)] = 20_000_000  # entry 0 of an index file is never used
    message_index_enable: bool = True
    file_reserved_time: Positive = 72
    delete_when: HoursOfDay = "04"
    clean_resource_interval: Positive = 10_000
    disk_max_used_space_ratio: Percent = 75
    clean_file_forcibly_enable: bool = False
    disk_space_clean_forcibly_ratio: Percent = 85
    disk_space_warning_level_ratio: Percent = 90
    flush_consumer_offset_interval: Positive = 5_000
    flush_delay_offset_interval: Positive = 10_000
    max_transfer_count_on_message_in_memory: Positive = 32
    max_transfer_bytes_on_message_in_memory: Positive = 256 * 1024

    # metrics, under RocketMQ 5's names
    metrics_exporter_type: Literal["DISABLE", "PROM"] = "DISABLE"
    metrics_prom_exporter_port: Port = 5557
    metrics_prom_exporter_host: str = ""
    metrics_label: MetricsLabel = ""

    @property
    def store_root(self) -> Path:
        """Returns the store's directory, with `~` expanded."""
        return Path(self.store_path_root_dir).expanduser()

    @property
    def acl_file(self) -> Path:
        """Returns the path of the accounts file. A relative path is resolved against RocketMQ's home."""
        return Path(self.rocketmq_home).expanduser() / Path(self.plain_acl_file).expanduser()

    @property
    def acl_folder(self) -> Path:
        """Returns the folder that may contain further account files."""
        return Path(self.rocketmq_home).expanduser() / "conf" / "acl"

    @property
    def tls(self) -> dict[str, str]:
        """Returns the TLS settings, keyed by RocketMQ's property names, for rocketmq_broker.remoting.tls."""
        values: dict[str, object] = msgspec.to_builtins(self)
        return {name: str(value) for name, value in values.items() if name.startswith("tls.")}

    @property
    def metrics_host(self) -> str:
        """Returns the host on which metrics are served. The default is `bindAddress`."""
        return self.metrics_prom_exporter_host or self.bind_address

    @property
    def consume_queue_units_per_file(self) -> int:
        """Returns the number of units in one consume queue file."""
        return self.maped_file_size_consume_queue // CONSUME_QUEUE_UNIT_BYTES

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Returns the addresses of the name servers with which to register. If empty, the broker runs its own name server."""
        return tuple(address.strip() for address in self.namesrv_addr.split(";") if address.strip())


class LoadedSettings(Struct, frozen=True):
    """The settings of a broker, and warnings for the user about properties that have no effect."""

    settings: BrokerSettings
    warnings: tuple[str, ...] = ()


def load_settings(
    path: Path | None, overrides: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> LoadedSettings:
    """Returns the settings in the file at `path`, or the defaults if it is None. Properties in `overrides` take precedence.

    If the property `rocketmqHome` is not set, its value is ROCKETMQ_HOME in `environment`. Raises ConfigError.
    """
    environment = environment or {}
    source = str(path) if path else "command line"
    properties = {**(_read(path) if path else {}), **(overrides or {})}
    properties = {OTHER_NAMES.get(name, name): value.strip() for name, value in properties.items()}
    if "ROCKETMQ_HOME" in environment:
        properties.setdefault("rocketmqHome", environment["ROCKETMQ_HOME"])
    properties |= _tls_properties(source, properties.get("tls.config.file"))
    known = {struct_field.encode_name for struct_field in msgspec.structs.fields(BrokerSettings)}
    warnings = tuple(_warning(source, name) for name in properties if name not in known)
    for name in NOT_SUPPORTED & properties.keys():
        if properties[name].lower() == "true":
            raise ConfigError(f"{source}: {name}=true: not supported by this broker")
    for name in known & properties.keys():
        _refuse_invalid_text(source, name, properties[name])
    settings = _convert(source, {name: value for name, value in properties.items() if name in known})
    _refuse_invalid_values(source, settings)
    return LoadedSettings(settings, warnings)


def _tls_properties(source: str, config_file: str | None) -> dict[str, str]:
    """Returns the properties in the file of TLS settings. As in RocketMQ, they override those in broker.conf.

    The default file may be missing. Raises ConfigError if another file cannot be read.
    """
    path = Path(config_file or DEFAULT_CONFIG_FILE)
    if config_file in {None, DEFAULT_CONFIG_FILE} and not path.exists():
        return {}
    return of_config_file(_read(path))


def _read(path: Path) -> dict[str, str]:
    try:
        return parse_properties(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text file in UTF-8") from None
    except ValueError as error:  # The path contains a NUL.
        raise ConfigError(f"{path}: {error}") from None


def _warning(source: str, name: str) -> str:
    if name in WITHOUT_EFFECT:
        return f"{source}: {name} has no effect in this broker"
    return f"{source}: unknown property {name} is ignored"


def _convert(source: str, properties: Mapping[str, str]) -> BrokerSettings:
    try:
        return msgspec.convert(properties, BrokerSettings, strict=False)
    except msgspec.ValidationError as error:
        reason, _, where = str(error).replace("Expected", "expected").partition(" - at `$.")
        reason, name = reason.replace("`", ""), where.rstrip("`")
        raise ConfigError(f"{source}: {name}={properties.get(name, '')}: {reason}") from None


def _refuse_invalid_text(source: str, name: str, value: str) -> None:
    if not value.isprintable():
        raise ConfigError(f"{source}: {name}={printable(value)}: contains a character that cannot be printed")
    if name in HOSTS:
        try:
            value.encode("idna")
        except UnicodeError:
            raise ConfigError(f"{source}: {name}={value}: not a host name or an address") from None


def _refuse_unknown_home_folders(source: str, settings: BrokerSettings) -> None:
    """Raises ConfigError if a path begins with `~NAME` and the user NAME does not exist."""
    for name, text in (
        ("storePathRootDir", settings.store_path_root_dir),
        ("storePathCommitLog", settings.store_path_commit_log),
        ("rocketmqHome", settings.rocketmq_home),
        ("rocketmq.acl.plain.file", settings.plain_acl_file),
    ):
        try:
            Path(text or "").expanduser()
        except RuntimeError as error:
            raise ConfigError(f"{source}: {name}={text}: {error}") from None


def _refuse_invalid_values(source: str, settings: BrokerSettings) -> None:
    """Raises ConfigError if a value is invalid although it has the type of its field."""
    try:
        ServerTls.from_properties(settings.tls)
        ClientTls.from_properties(settings.tls)
    except TlsUnusable as error:
        raise ConfigError(f"{source}: {error}") from None
    _refuse_unknown_home_folders(source, settings)
    if settings.acl_enable and not settings.acl_file.is_absolute():
        raise ConfigError(
            f"{source}: aclEnable=true requires an absolute path in rocketmqHome or the environment variable ROCKETMQ_HOME; "
            f"the accounts are read from {settings.plain_acl_file} in this folder"
        )
    if any(int(hour) > 23 for hour in settings.delete_when.split(";")):
        raise ConfigError(f"{source}: deleteWhen={settings.delete_when}: hours must be between 00 and 23")
    if settings.listen_port in (1, 2):
        raise ConfigError(
            f"{source}: listenPort={settings.listen_port}: must be 0 or at least 3, because the VIP channel uses listenPort - 2"
        )
    for address in settings.name_servers:
        host, separator, port = address.rpartition(":")
        if not (host and separator and port.isdigit()):
            raise ConfigError(f"{source}: namesrvAddr={settings.namesrv_addr}: expected HOST:PORT, several separated by ;")
    if settings.maped_file_size_commit_log > sys.maxsize // 2:
        size = settings.maped_file_size_commit_log
        raise ConfigError(f"{source}: mapedFileSizeCommitLog={size}: too large, at most {sys.maxsize // 2}")
