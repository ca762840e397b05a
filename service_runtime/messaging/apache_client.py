"""Uses Apache's Python client for RocketMQ 5 (rocketmq-python-client, over gRPC), in services that are configured for it.

Only this module imports that client, and only when it is needed. The import loads gRPC, starts a thread, and opens a log file,
`~/logs/rocketmq_python/rocketmq_client.log`.
"""

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from rocketmq_broker.client import ClientError, IllegalConfiguration, Message, MessageExt
from rocketmq_broker.client.instance.access import credentials_of, tls_of
from rocketmq_broker.message import properties

INSTALL: Final = "pip install rocketmq-python-client==5.1.2"
_OF_OUR_OWN: Final = frozenset({properties.TAGS, properties.KEYS, properties.UNIQUE_KEY, properties.WAIT_STORE_MSG_OK})
"""Properties that are not copied, because the API of RocketMQ 5 has fields for them or does not support them."""

logger = logging.getLogger(__name__)


def apache_client() -> Any:
    """Returns the package `rocketmq`. Raises IllegalConfiguration if it is not installed or cannot be imported here."""
    try:
        return import_module("rocketmq")
    except ImportError as error:
        raise IllegalConfiguration(f"Apache's Python client of RocketMQ 5 is not installed ({error}): {INSTALL}") from None
    except (OSError, ValueError) as error:  # logging.config raises a ValueError if it cannot open the log file
        reason = error.__cause__ or error
        raise IllegalConfiguration(f"Apache's Python client cannot open its log in ~/logs/rocketmq_python: {reason}") from None


def client_settings(endpoints: str, timeout_ms: int, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Returns the settings that every client of Apache's package takes: the broker's endpoints, the account and TLS.

    `endpoints` has the form `host:port;host:port`. Account and TLS come from the environment variables that this project's
    clients use too. Of the TLS variables only ROCKETMQ_TLS_ENABLE applies, because Apache's client reads trusted certificates
    from the file in gRPC's GRPC_DEFAULT_SSL_ROOTS_FILE_PATH. The client's time-outs are whole seconds, so `timeout_ms` is rounded
    up. Raises IllegalConfiguration.
    """
    apache, account = apache_client(), credentials_of(environment)
    credentials = apache.Credentials(account.access_key, account.secret_key) if account is not None else apache.Credentials()
    try:
        configuration = apache.ClientConfiguration(endpoints, credentials, request_timeout=-(-timeout_ms // 1000))
    except Exception as error:  # the client's errors have no common base class
        raise IllegalConfiguration(f"Apache's Python client does not accept the endpoints {endpoints!r}: {error}") from None
    return {"client_configuration": configuration, "tls_enable": tls_of(environment) is not None}


def to_apache(message: Message) -> Any:
    """Converts a message to Apache's class. Apache's client generates the message id when it sends the message."""
    made = apache_client().Message()
    made.topic, made.body = message.topic, message.body
    if message.tags:
        made.tag = message.tags
    for key in message.keys:
        made.keys = key  # each assignment adds a key
    for name, value in message.properties.items():
        if name not in _OF_OUR_OWN:
            made.add_property(name, value)
    return made


def of_apache(message: Any) -> MessageExt:
    """Converts a received message, or the half message of a check-back, to this project's class.

    The API returns neither positions in the log nor the broker's counters, so these fields are 0 or empty. Only `reconsume_times`
    is returned.
    """
    named = {**message.properties, properties.UNIQUE_KEY: message.message_id}
    if message.tag:
        named[properties.TAGS] = message.tag
    if message.keys:
        named[properties.KEYS] = properties.KEY_SEPARATOR.join(sorted(message.keys))
    return MessageExt(
        topic=message.topic,
        body=message.body,
        properties=named,
        broker_name="",
        queue_id=0,
        queue_offset=0,
        commit_log_offset=0,
        store_size=0,
        sys_flag=0,
        body_crc=0,
        born_timestamp=message.born_timestamp or 0,
        born_host=message.born_host or "",
        store_timestamp=0,
        store_host="",
        reconsume_times=max(0, (message.delivery_attempt or 1) - 1),
        prepared_transaction_offset=0,
        offset_message_id="",
    )


def open_client(kind: str, **arguments: Any) -> Any:
    """Creates a client of Apache's class `kind`, such as `Producer`, and starts it. Raises ClientError."""
    try:
        client = getattr(apache_client(), kind)(**arguments)
        _open_telemetry_from_any_thread(client.rpc_client)
        client.startup()
    except ClientError:
        raise
    except Exception as error:
        raise ClientError(f"Apache's Python client did not start: {error}") from error
    return client


def _open_telemetry_from_any_thread(rpc_client: Any) -> None:
    """Allows a thread without an event loop to open the client's telemetry stream, which carries check-backs.

    Apache's client 5.1.2 reopens the stream in the thread that noticed its end. gRPC refuses that in a thread without an event
    loop ("There is no current event loop in thread"). The client then receives no check-backs for five minutes or more.
    """
    open_stream = rpc_client.telemetry_stream

    def telemetry_stream(*arguments: Any, **named: Any) -> Any:
        asyncio.set_event_loop(rpc_client.get_channel_io_loop())
        try:
            return open_stream(*arguments, **named)
        finally:
            asyncio.set_event_loop(None)

    rpc_client.telemetry_stream = telemetry_stream


def stopped(name: str, client: Any) -> None:
    """Shuts down one of Apache's clients. Logs a failure.

    Turns off the client's metrics first. The client leaves them on, so that the process would wait for an unavailable broker when
    it exits.
    """
    try:
        client.reset_metric(import_module("rocketmq.grpc_protocol").Metric(on=False))
        client.shutdown()
    except Exception as error:
        logger.warning("the %s did not shut down cleanly: %s", name, error)


class ApacheRoute:
    """Requests the route of a topic from the broker. Apache's client requests routes only every 30 s.

    When the broker is available again, it also reopens the telemetry stream, which carries check-backs. Apache's client 5.1.2
    opens the stream with the first route of a topic, and checks it only every five minutes.
    """

    def __init__(self, client: Any, topics: Sequence[str], timeout_ms: int) -> None:
        """`client` must have been started for these `topics`. `timeout_ms` is the time-out of each request."""
        self._client = client
        self._topics = topics
        self._timeout_s = timeout_ms / 1000
        self._was_away = False

    def why_missing(self, topic: str) -> str | None:
        """Returns the reason why the broker returns no route for the topic now, in one line; None if it returns one."""
        why = self._ask(topic)
        was_away, self._was_away = self._was_away, why is not None
        if why is None and was_away:
            self._open_telemetry()
        return why

    def _ask(self, topic: str) -> str | None:
        protocol, client = import_module("rocketmq.grpc_protocol"), self._client
        at = client.client_configuration.rpc_endpoints
        request = protocol.QueryRouteRequest(topic=protocol.Resource(name=topic), endpoints=at.endpoints)
        asked = client.rpc_client.query_topic_route_async(at, request, metadata=client.sign(), timeout=self._timeout_s)
        try:
            status = asked.result().status
        except Exception as error:
            return in_a_line(error)
        return None if status.code == protocol.Code.OK else str(status.message)

    def _open_telemetry(self) -> None:
        routes = self._client.route_manager
        for endpoints in routes.get_all_endpoints().values():
            self._client.on_new_endpoints(endpoints)
        for topic in self._topics:
            routes.update_topic_route(topic)


def in_a_line(error: Exception) -> str:
    """Returns the message of an error in one line. gRPC's own error texts are a page long."""
    details = getattr(error, "details", None)
    return str(details() if callable(details) else error)
