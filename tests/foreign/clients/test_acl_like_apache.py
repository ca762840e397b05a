"""Tests that each request of each kind of account is accepted or refused as by Apache RocketMQ 4.9.7.

`STRICTER` lists the requests that only this broker refuses. The test checks that Apache's broker accepts them.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, SubscriptionData
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, SerializeType
from rocketmq_broker.remoting import RemotingClient, RemotingTimeout
from rocketmq_broker.remoting.connections.own_requests import SignedHeader
from tests.foreign.apache.cluster import apache_rocketmq
from tests.foreign.clients.mqadmin.session import Mqadmin

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.java, pytest.mark.timeout(900)]

SECRET = "a long secret"
ACCOUNTS = f"""
globalWhiteRemoteAddresses:
  - 10.10.103.*

accounts:
  - accessKey: reader-key
    secretKey: {SECRET}
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      - groupA=DENY
      - groupB=PUB|SUB

  - accessKey: admin-key
    secretKey: {SECRET}
    admin: true

  - accessKey: white-key
    secretKey: {SECRET}
    whiteRemoteAddress: 127.0.0.1
"""
SENDERS: Mapping[str, SessionCredentials | None] = {
    "nobody": None,
    "stranger": SessionCredentials("stranger-key", SECRET),
    "wrong secret": SessionCredentials("reader-key", "another secret"),
    "reader": SessionCredentials("reader-key", SECRET),
    "admin": SessionCredentials("admin-key", SECRET),
    "trusted address": SessionCredentials("white-key", "another secret"),
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request with its fields and body."""

    code: int
    fields: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def __str__(self) -> str:
        name = RequestCode(self.code).name if self.code in set(RequestCode) else str(self.code)
        return f"{name} {' '.join(value for _, value in self.fields)}".strip()


def request(code: int, body: bytes = b"", **fields: str) -> Request:
    return Request(code, tuple(fields.items()), body)


def heartbeat(group: str, *topics: str) -> bytes:
    subscriptions = [SubscriptionData(topic=topic) for topic in topics]
    return HeartbeatData(client_id="c", consumer_data_set=[ConsumerData(group, subscription_data_set=subscriptions)]).encode()


def lock(group: str) -> bytes:
    return LockBatchRequestBody(consumer_group=group, client_id="c").encode()


R = RequestCode
V1 = {"producerGroup": "p", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0", "sysFlag": "0",
      "bornTimestamp": "1", "flag": "0"}  # fmt: skip
V2 = {"a": "p", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "i": "", "j": "0", "k": "false"}
OFFSET = {"queueId": "0", "commitOffset": "0"}
PULL = {"queueId": "0", "queueOffset": "0", "maxMsgNums": "1", "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0",
        "subVersion": "0"}  # fmt: skip
QUERY = {"key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"}
SENT_BACK = {"offset": "1000000", "delayLevel": "0"}
NAMED = [
    *(request(R.SEND_MESSAGE, topic=topic, **V1) for topic in ("topicA", "topicB", "topicC", "topicD")),
    *(request(R.SEND_MESSAGE_V2, b=topic, **V2) for topic in ("topicA", "topicB", "topicC", "topicD", "RMQ_SYS_TRACE_TOPIC")),
    *(
        request(R.PULL_MESSAGE, topic=topic, consumerGroup=group, **PULL)
        for topic, group in (("topicB", "groupB"), ("topicC", "groupC"), ("topicC", "groupA"), ("topicA", "groupB"))
    ),
    *(request(R.QUERY_MESSAGE, topic=topic, **QUERY) for topic in ("topicA", "topicB", "topicC", "topicD")),
    *(request(R.CONSUMER_SEND_MSG_BACK, group=group, **SENT_BACK) for group in ("groupA", "groupB", "groupC")),
    *(request(R.HEART_BEAT, heartbeat("groupB", topic)) for topic in ("topicA", "topicB", "topicD", "%RETRY%groupB")),
    *(request(R.HEART_BEAT, heartbeat(group)) for group in ("groupA", "groupB", "groupC")),
    *(request(R.UNREGISTER_CLIENT, clientID="c", consumerGroup=group) for group in ("groupA", "groupB")),
    request(R.UNREGISTER_CLIENT, clientID="c", producerGroup="p"),
    *(request(R.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=group) for group in ("groupA", "groupB", "groupC")),
    *(
        request(R.UPDATE_CONSUMER_OFFSET, topic=topic, consumerGroup=group, **OFFSET)
        for topic, group in (("topicB", "groupB"), ("topicA", "groupB"), ("topicB", "groupA"))
    ),
]
BODIES = {R.HEART_BEAT: heartbeat("groupB"), R.LOCK_BATCH_MQ: lock("groupB"), R.UNLOCK_BATCH_MQ: lock("groupB")}
OF_OTHERS = {R.HEART_BEAT, R.UNREGISTER_CLIENT, R.GET_CONSUMER_LIST_BY_GROUP, R.UPDATE_CONSUMER_OFFSET}
"""Among NAMED already; without their fields Apache's check itself fails."""
EVERY_CODE = [request(code, BODIES.get(code, b"")) for code in (*R, 12_345) if code not in OF_OTHERS]
ALIKE_FOR_ALL = [*NAMED, *EVERY_CODE]
"""Less what STRICTER holds of an account that is no admin."""
STRICTER = [
    request(R.SEND_MESSAGE, topic="%RETRY%groupA", **V1),
    request(R.SEND_MESSAGE_V2, b="%RETRY%groupA", **V2),
    request(R.SEND_BATCH_MESSAGE, b="topicA", **V2),
    request(R.SEND_REPLY_MESSAGE, topic="topicA", **V1),
    request(R.SEND_REPLY_MESSAGE_V2, b="topicA", **V2),
    request(R.LOCK_BATCH_MQ, lock("groupA")),
    request(R.UNLOCK_BATCH_MQ, lock("groupA")),
    request(R.INVOKE_BROKER_TO_RESET_OFFSET, topic="topicA", group="groupB", timestamp="-1", isForce="true"),
    request(R.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, topic="topicA", group="groupB"),
    request(R.GET_CONSUMER_RUNNING_INFO, consumerGroup="groupA", clientId="c"),
    request(R.CLONE_GROUP_OFFSET, srcGroup="groupB", destGroup="groupA"),
    request(R.CONSUME_MESSAGE_DIRECTLY, consumerGroup="groupA"),
    *(
        request(code)
        for code in (
            R.UPDATE_AND_CREATE_ACL_CONFIG, R.DELETE_ACL_CONFIG, R.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
            R.GET_BROKER_CLUSTER_ACL_CONFIG, R.RESUME_CHECK_HALF_MESSAGE, R.TRIGGER_DELETE_FILES, R.DELETE_EXPIRED_COMMITLOG,
            R.CLEAN_EXPIRED_CONSUMEQUEUE, R.CLEAN_UNUSED_TOPIC, R.PUT_KV_CONFIG, R.DELETE_KV_CONFIG, R.DELETE_TOPIC_IN_NAMESRV,
            R.WIPE_WRITE_PERM_OF_BROKER, R.ADD_WRITE_PERM_OF_BROKER, R.SET_MESSAGE_REQUEST_MODE,
        )
    ),
    *(request(code) for code in set(AdminRequestCode) - {AdminRequestCode.COUNT_PARKED_MESSAGES}),
]  # fmt: skip
_STRICTER_CODES = {one.code for one in STRICTER if not one.fields and not one.body}
_FRAME = re.compile(r", org\.apache\.[\w.$]+\(\w+\.java:\d+\)$")
BUSY = 2
_REFUSED = "org.apache.rocketmq.acl.common.AclException: "


@dataclass(frozen=True, slots=True)
class Place:
    """A broker with the accounts in ACCOUNTS."""

    namesrv_addr: str
    broker_addr: str
    home: Path

    async def refusals(self, requests: list[Request], sender: str, serializer: SerializeType) -> dict[str, str | None]:
        """Returns the reason for each request's refusal, or None if the ACL accepts the request, even if it fails later."""
        client = RemotingClient(serialize_type=serializer)
        try:
            found = await asyncio.gather(*(self._refusal(client, one, SENDERS[sender]) for one in requests))
        finally:
            await client.close()
        return {str(one): refusal for one, refusal in zip(requests, found, strict=True)}

    async def _refusal(self, client: RemotingClient, one: Request, sender: SessionCredentials | None) -> str | None:
        fields = dict(one.fields)
        header = SignedHeader(sender.signed(fields, one.body) if sender is not None else fields or {"any": "field"})
        try:
            answer = await client.invoke(self.broker_addr, one.code, header, one.body, timeout_ms=20_000)
            if answer.code == BUSY:  # on a slow machine Apache's broker gives up what waited for 200 ms
                return await self._refusal(client, one, sender)
        except RemotingTimeout:
            return None  # Apache's broker lets some in, and then does not answer
        remark = answer.remark or ""
        return _FRAME.sub("", remark).removeprefix(_REFUSED) if answer.code == 1 and remark.startswith(_REFUSED) else None


def written(home: Path) -> Path:
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "plain_acl.yml").write_text(ACCOUNTS)
    return home


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    home = written(tmp_path_factory.mktemp("apache") / "home")
    namesrv_port, broker_port = free_ports(2)
    ports = {"NAMESRV_PORT": str(namesrv_port), "BROKER_PORT": str(broker_port)}
    with apache_rocketmq(home, settings={"PROPERTIES": "aclEnable=true", **ports}):
        yield Place(f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{broker_port}", home)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    home = written(tmp_path_factory.mktemp("ours") / "home")
    namesrv_port, port = free_ports(2)
    settings = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port), "aclEnable": "true", "rocketmqHome": str(home)}
    with Processes(home / "logs") as processes:
        add_broker(processes, home, settings).start()
        yield Place(f"127.0.0.1:{namesrv_port}", f"127.0.0.1:{port}", home)


@pytest.mark.parametrize("serializer", SerializeType)
@pytest.mark.parametrize("sender", SENDERS)
async def test_every_request_is_let_in_or_refused_as_by_apaches_broker(
    apache: Place, ours: Place, sender: str, serializer: SerializeType
) -> None:
    requests = [one for one in ALIKE_FOR_ALL if sender != "reader" or one in NAMED or one.code not in _STRICTER_CODES]
    if serializer is SerializeType.ROCKETMQ:
        requests = [one for one in requests if one.code < 1 << 15]  # two bytes have room for a code; pops come in JSON
    theirs, here = await asyncio.gather(*(place.refusals(requests, sender, serializer) for place in (apache, ours)))
    assert here == theirs
    assert len(theirs) > 100
    assert all(theirs.values()) is (sender in ("nobody", "stranger", "wrong secret"))


async def test_ours_is_stricter_where_apaches_broker_forgets_to_look(apache: Place, ours: Place) -> None:
    known = [one for one in STRICTER if one.code not in set(AdminRequestCode)]
    theirs, here = await asyncio.gather(
        apache.refusals(known, "reader", SerializeType.JSON), ours.refusals(STRICTER, "reader", SerializeType.JSON)
    )
    assert {name: refusal for name, refusal in theirs.items() if refusal} == {}
    assert [name for name, refusal in here.items() if refusal is None] == []
    assert [name for name, refusal in (await ours.refusals(STRICTER, "admin", SerializeType.JSON)).items() if refusal] == []


COMMANDS = {
    "make an account": "updateAclConfig -b {broker} -a orders-key -s orders-secret -t orders=PUB,o=SUB -g g=SUB -i DENY -u SUB",
    "change it": "updateAclConfig -b {broker} -a orders-key -s orders-secret -t orders=PUB|SUB -w 192.168.1.*",
    "make one in the cluster": "updateAclConfig -c DefaultCluster -a credits-key -s credits-secret -m true",
    "make one with a short key": "updateAclConfig -b {broker} -a short -s credits-secret",
    "versions": "clusterAclConfigVersion -b {broker}",
    "delete one": "deleteAccessConfig -b {broker} -a credits-key",
    "delete one that is not there": "deleteAccessConfig -b {broker} -a nobody-key",
    "trust addresses": "updateGlobalWhiteAddr -b {broker} -g 10.10.103.*,192.168.0.*",
    "trust addresses by a file that is not there": "updateGlobalWhiteAddr -b {broker} -g 10.10.103.* -p /no/such/file.yml",
    "show all": "getAccessConfigSubCommand -b {broker}",
    "show all under its newer name": "getAclConfig -c DefaultCluster",
}
PRINTED_DIFFERENTLY = {
    "make one with a short key": "Apache's remark has the secret key in it",
    "trust addresses by a file that is not there": "ours says which files there are",
}


def printed(place: Place, secret: str) -> dict[str, str]:
    """Returns mqadmin's output for the account admin-key with this secret, which may be wrong."""
    home = place.home / f"mqadmin-{secret.replace(' ', '-')}"
    (home / "conf").mkdir(parents=True)
    (home / "conf" / "tools.yml").write_text(f"accessKey: admin-key\nsecretKey: {secret}\n")
    with Mqadmin(place.namesrv_addr, home) as mqadmin:
        texts = {name: mqadmin.run(*command.format(broker=place.broker_addr).split()) for name, command in COMMANDS.items()}
    return {name: comparable(text, place) for name, text in texts.items()}


def comparable(text: str, place: Place) -> str:
    text = _FRAME.sub("", text.replace(place.broker_addr, "BROKER"))
    text = re.sub(r", org\.apache\.[\w.$]+\(\w+\.java:\d+\)", "", text.replace(str(place.home), "HOME"))
    text = re.sub(r"(?m)^( *secretKey *:).*$", r"\1", text)  # Apache's broker tells it, and ours does not
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", text)
    return re.sub(r" {2,}", "  ", re.sub(r"PlainAccessConfig@[0-9a-f]+", "PlainAccessConfig", text)).strip()


@pytest.fixture(scope="module")
def mqadmin_on_both(apache: Place, ours: Place) -> tuple[dict[str, str], dict[str, str]]:
    return printed(apache, SECRET), printed(ours, SECRET)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in PRINTED_DIFFERENTLY])
def test_mqadmin_prints_of_our_accounts_what_it_prints_of_apaches(
    mqadmin_on_both: tuple[dict[str, str], dict[str, str]], name: str
) -> None:
    theirs, here = mqadmin_on_both
    assert here[name] == theirs[name]


def test_mqadmins_mistakes_are_answered_without_a_secret(mqadmin_on_both: tuple[dict[str, str], dict[str, str]]) -> None:
    _, here = mqadmin_on_both
    assert "accessKey too short" in here["make one with a short key"]
    assert "/no/such/file.yml is not an account file" in here["trust addresses by a file that is not there"]
    assert "credits-secret" not in here["make one with a short key"]


def test_mqadmin_with_a_wrong_secret_is_refused(ours: Place) -> None:
    texts = printed(ours, "another secret")
    assert [name for name, text in texts.items() if "Check signature failed for accessKey=admin-key" not in text] == []
