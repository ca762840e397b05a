"""Reads a client's credentials and TLS settings from its arguments or from environment variables."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rocketmq_broker.acl import IllegalCredentials, SessionCredentials
from rocketmq_broker.client.errors import IllegalConfiguration
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.rpc_hook import RpcHook
from rocketmq_broker.remoting.tls import ClientTls, TlsUnusable

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}


def open_remoting(
    dispatcher: Dispatcher | None,
    credentials: SessionCredentials | None,
    tls: ClientTls | bool | None,
    environment: Mapping[str, str],
    rpc_hook: RpcHook | None = None,
) -> RemotingClient:
    """Creates the RemotingClient that holds a client's connections.

    Credentials and TLS settings that are None are read from `environment`; `tls=False` disables TLS in any environment.
    `rpc_hook`, if given, is called with all requests and responses. Raises IllegalConfiguration if a setting is invalid.
    """
    if tls is None:
        tls = tls_of(environment)
    elif isinstance(tls, bool):
        tls = ClientTls() if tls else None
    try:
        return RemotingClient(dispatcher, credentials=credentials or credentials_of(environment), tls=tls, rpc_hook=rpc_hook)
    except TlsUnusable as error:
        raise IllegalConfiguration(f"TLS: {error}") from None


def credentials_of(environment: Mapping[str, str]) -> SessionCredentials | None:
    """Returns the credentials in ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY; None if neither is set.

    ROCKETMQ_SECRET_KEY_FILE may name a file with the secret key. ROCKETMQ_SECURITY_TOKEN is optional.
    Raises IllegalConfiguration.
    """
    access_key = environment.get("ROCKETMQ_ACCESS_KEY", "")
    secret_key = _secret(environment, "ROCKETMQ_SECRET_KEY")
    if not access_key and not secret_key:
        return None
    try:
        return SessionCredentials(access_key, secret_key, environment.get("ROCKETMQ_SECURITY_TOKEN") or None)
    except IllegalCredentials as error:
        raise IllegalConfiguration(f"ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY: {error}") from None


def tls_of(environment: Mapping[str, str]) -> ClientTls | None:
    """Returns the TLS settings in the environment; None unless ROCKETMQ_TLS_ENABLE is true. Raises IllegalConfiguration.

    The fields of ClientTls come from ROCKETMQ_TLS_TRUST_CERT_PATH, ROCKETMQ_TLS_AUTH_SERVER, ROCKETMQ_TLS_CHECK_HOSTNAME,
    ROCKETMQ_TLS_CERT_PATH, ROCKETMQ_TLS_KEY_PATH, ROCKETMQ_TLS_KEY_PASSWORD and ROCKETMQ_TLS_KEY_PASSWORD_FILE.
    """
    if not _boolean(environment, "ROCKETMQ_TLS_ENABLE", False):
        return None
    try:
        return ClientTls(
            trust_cert_path=environment.get("ROCKETMQ_TLS_TRUST_CERT_PATH") or None,
            auth_server=_boolean(environment, "ROCKETMQ_TLS_AUTH_SERVER", True),
            check_hostname=_boolean(environment, "ROCKETMQ_TLS_CHECK_HOSTNAME", True),
            cert_path=environment.get("ROCKETMQ_TLS_CERT_PATH") or None,
            key_path=environment.get("ROCKETMQ_TLS_KEY_PATH") or None,
            key_password=_secret(environment, "ROCKETMQ_TLS_KEY_PASSWORD") or None,
        )
    except TlsUnusable as error:
        raise IllegalConfiguration(f"ROCKETMQ_TLS_…: {error}") from None


def _secret(environment: Mapping[str, str], name: str) -> str:
    """Returns the variable `name`, or else the content of the file whose path is in the variable `name` with the suffix _FILE.

    Container platforms provide secrets as files.
    """
    given, path = environment.get(name, ""), environment.get(f"{name}_FILE", "")
    if given and path:
        raise IllegalConfiguration(f"{name} and {name}_FILE are both set: set only one")
    if not path:
        return given
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file in UTF-8"
        raise IllegalConfiguration(f"{name}_FILE={path}: {reason}") from None


def _boolean(environment: Mapping[str, str], name: str, default: bool) -> bool:
    text = environment.get(name, "").strip().lower()
    if not text:
        return default
    if text not in _BOOLEANS:
        raise IllegalConfiguration(f"{name} must be true or false, not {text}")
    return _BOOLEANS[text]
