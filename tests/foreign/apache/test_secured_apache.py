"""Tests of the client with TLS and an account, with an Apache RocketMQ that requires both."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rocketmq_broker.client import (
    ClientError,
    ClientTls,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    EventLoopThread,
    Producer,
    PushConsumer,
    SessionCredentials,
    TransactionProducer,
)
from rocketmq_broker.message import Message, MessageExt
from tests.certificates import Authority
from tests.foreign.apache.cluster import apache_rocketmq
from tests.unit.testing.listeners import UNKNOWN, Transactions

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]

TOPIC = "SecuredTopic"
ACCOUNTS = """
accounts:
- accessKey: admin-key
  secretKey: the secret of admins
  admin: true
- accessKey: plain-key
  secretKey: the secret of others
  topicPerms: [SecuredTopic=PUB|SUB]
  groupPerms: [secured_consumers=SUB]
"""
PLAIN = SessionCredentials("plain-key", "the secret of others")
DELIVERED_WITHIN_S = 120


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def namesrv_addr(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yields the address of a name server. The name server and its broker accept only TLS, even from each other."""
    home = tmp_path_factory.mktemp("apache") / "home"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    certificate = authority.sign("apache")
    options = {
        "tls.enable": "true",
        "tls.test.mode.enable": "false",
        "tls.server.mode": "enforcing",
        "tls.server.certPath": certificate.cert_path,
        "tls.server.keyPath": certificate.key_path,
        "tls.client.authServer": "true",
        "tls.client.trustCertPath": authority.cert_path,
    }
    settings = {
        "JAVA_OPTIONS": " ".join(f"-D{name}={value}" for name, value in options.items()),
        "PROPERTIES": "aclEnable=true",
        "CHECK_INTERVAL_MS": "1000",
        "TRANSACTION_TIMEOUT_MS": "1000",
    }
    with apache_rocketmq(home, settings=settings, accepts_plain=False) as address:
        yield address


def created(loop: EventLoopThread, settings: dict[str, Any]) -> None:
    admin = Producer("tools", **{**settings, "credentials": SessionCredentials("admin-key", "the secret of admins")})
    loop.run(admin.start())
    loop.run(admin.create_topic(TOPIC, 1))
    loop.run(admin.shutdown())


def test_a_transaction_is_checked_back_and_consumed_over_tls_by_an_account(namesrv_addr: str, authority: Authority) -> None:
    settings: dict[str, Any] = {
        "namesrv_addr": namesrv_addr, "tls": ClientTls(trust_cert_path=authority.cert_path), "credentials": PLAIN,
    }  # fmt: skip
    arrived = threading.Event()

    def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        if any(message.body == b"transactional" for message in messages):
            arrived.set()
        return ConsumeStatus.CONSUME_SUCCESS

    with EventLoopThread() as loop:
        created(loop, settings)
        producer = TransactionProducer("secured_producers", Transactions(UNKNOWN), **settings)
        consumer = PushConsumer("secured_consumers", consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, **settings)
        consumer.subscribe(TOPIC)
        consumer.register_message_listener(consume)
        loop.run(producer.start())
        loop.run(consumer.start())
        loop.run(producer.send_message_in_transaction(Message(topic=TOPIC, body=b"transactional"), None))
        assert arrived.wait(DELIVERED_WITHIN_S)
        loop.run(consumer.shutdown())
        loop.run(producer.shutdown())


def test_a_wrong_secret_is_refused_and_so_is_a_plain_connection(namesrv_addr: str, authority: Authority) -> None:
    tls = ClientTls(trust_cert_path=authority.cert_path)
    wrong = SessionCredentials("plain-key", "another secret")
    with EventLoopThread() as loop:
        created(loop, {"namesrv_addr": namesrv_addr, "tls": tls})
        for settings, words in (
            ({"tls": tls, "credentials": wrong}, "Check signature failed for accessKey=plain-key"),
            ({"tls": tls}, "No accessKey is configured"),
            ({"credentials": PLAIN}, "no name server answers"),
        ):
            producer = Producer("anybody", namesrv_addr=namesrv_addr, **settings)  # type: ignore[arg-type]
            loop.run(producer.start())
            with pytest.raises(ClientError) as caught:
                loop.run(producer.send(Message(topic=TOPIC, body=b"forged")))
            assert words in f"{caught.value} {caught.value.__cause__}"
            loop.run(producer.shutdown())
