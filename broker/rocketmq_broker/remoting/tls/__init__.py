"""TLS on the same port as plain connections (RocketMQ's TlsHelper and HandshakeHandler)."""

from rocketmq_broker.remoting.tls.contexts import client_context
from rocketmq_broker.remoting.tls.errors import TlsError, TlsUnusable, is_about_certificate, words_of
from rocketmq_broker.remoting.tls.opening import Opening
from rocketmq_broker.remoting.tls.server_contexts import ServerContexts
from rocketmq_broker.remoting.tls.settings import (
    DEFAULT_CONFIG_FILE,
    ClientTls,
    NeedClientAuth,
    ServerTls,
    TlsMode,
    of_config_file,
)

__all__ = [
    "DEFAULT_CONFIG_FILE",
    "ClientTls",
    "NeedClientAuth",
    "Opening",
    "ServerContexts",
    "ServerTls",
    "TlsError",
    "TlsMode",
    "TlsUnusable",
    "client_context",
    "is_about_certificate",
    "of_config_file",
    "words_of",
]
