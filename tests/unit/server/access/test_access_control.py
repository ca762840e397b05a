"""Requests are checked against the current accounts. Changes to the files and requests of operators take effect."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol.codes import RequestCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.acl import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)
from rocketmq_broker.remoting.dispatcher import Dispatcher
from rocketmq_broker.remoting.tasks import Tasks
from rocketmq_broker.server.access import AccessControl, AccountFiles, AclProcessor, NoAclProcessor
from rocketmq_broker.server.access import access_control as module
from rocketmq_broker.server.access.refusal_log import RefusalLog
from rocketmq_broker.server.topics.identity import BrokerIdentity

SECRET = "a long secret"
FILE = f"""
accounts:
- accessKey: admin-key
  secretKey: {SECRET}
  admin: true
- accessKey: plain-key
  secretKey: {SECRET}
"""
NOW_MS = 1_700_000_000_000


class Wire:
    peer = "192.0.2.7:5555"
    peer_ip = "192.0.2.7"
    must_rest = False

    def __init__(self) -> None:
        self.answers: list[RemotingCommand] = []

    def send(self, frame: bytes) -> None:
        self.answers += FrameDecoder().feed(frame)


class Signed(CommandHeader):
    """A header with any fields."""

    fields: dict[str, str]

    def ext_fields(self) -> dict[str, str]:
        return self.fields


class Place:
    """The access control of a broker, which receives requests as over the wire."""

    def __init__(self, home: Path) -> None:
        self.path = home / "conf" / "plain_acl.yml"
        self.path.parent.mkdir()
        self.path.write_text(FILE)
        self.tasks = Tasks()
        self.dispatcher = Dispatcher()
        self.access: AccessControl

    def open(self) -> None:
        self.access = AccessControl(AccountFiles(self.path, self.path.parent / "acl"), lambda offset: None)
        self.dispatcher.guard_by(self.access.check)
        identity = BrokerIdentity(
            cluster="DefaultCluster", name="broker-a", broker_id=0, host="127.0.0.1", port=10911, ip="127.0.0.1"
        )
        processor = AclProcessor(access=self.access, identity=identity, tasks=self.tasks, clock=lambda: NOW_MS)
        self.dispatcher.add(processor.handlers)

    async def ask(
        self,
        code: int,
        header: CommandHeader | None = None,
        *,
        account: str | None = "admin-key",
        secret: str = SECRET,
        serializer: SerializeType = SerializeType.JSON,
    ) -> RemotingCommand:
        fields = header.ext_fields() if header is not None else {}
        if account is not None:
            fields = SessionCredentials(account, secret).signed(fields, b"")
        frame = encode_request(code, Signed(fields), opaque=5, serialize_type=serializer)
        wire = Wire()
        self.dispatcher.on_requests(wire, FrameDecoder().feed(frame))  # type: ignore[arg-type]
        await self.tasks.settle(20)
        (answer,) = wire.answers
        return answer


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.open()
    return place


async def test_a_refused_request_is_answered_as_apaches_broker_answers_it(place: Place) -> None:
    answer = await place.ask(RequestCode.GET_BROKER_CLUSTER_ACL_INFO, secret="another secret")
    assert (answer.code, answer.opaque) == (1, 5)
    assert answer.remark == "org.apache.rocketmq.acl.common.AclException: Check signature failed for accessKey=admin-key"


async def test_an_unknown_code_is_refused_before_it_is_not_supported(place: Place) -> None:
    assert (await place.ask(12_345, account=None)).remark == (
        "org.apache.rocketmq.acl.common.AclException: No accessKey is configured"
    )
    assert (await place.ask(12_345)).code == 3


@pytest.mark.parametrize("serializer", SerializeType)
async def test_an_account_that_was_made_by_request_is_on_disk_and_in_force(place: Place, serializer: SerializeType) -> None:
    header = CreateAccessConfigRequestHeader(
        access_key="orders-key", secret_key="another secret", topic_perms="orders=PUB,credits=SUB", group_perms="g=SUB"
    )
    answer = await place.ask(RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, header, serializer=serializer)
    assert (answer.code, answer.remark) == (0, None)
    text = place.path.read_text()
    assert "accessKey: orders-key" in text
    assert "- orders=PUB" in text
    assert (await place.ask(12_345, account="orders-key", secret="another secret")).code == 3
    assert "counter: 1" in text
    assert f"timestamp: {NOW_MS}" in text


async def test_a_change_leaves_what_it_does_not_name(place: Place) -> None:
    first = CreateAccessConfigRequestHeader(
        access_key="plain-key", secret_key=SECRET, default_topic_perm="SUB", topic_perms="orders=PUB"
    )
    assert (await place.ask(50, first)).code == 0
    second = CreateAccessConfigRequestHeader(access_key="plain-key", secret_key="another secret", group_perms="g=SUB")
    assert (await place.ask(50, second)).code == 0
    (account,) = (one for one in place.access.content[str(place.path)].accounts if one.access_key == "plain-key")
    assert (account.default_topic_perm, account.topic_perms, account.group_perms) == ("SUB", ("orders=PUB",), ("g=SUB",))
    assert account.secret_key == "another secret"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (CreateAccessConfigRequestHeader("orders-key", "short!"), "secretKey too short: at least 7"),
        (CreateAccessConfigRequestHeader("orders", "long enough"), "accessKey too short: at least 7"),
        (CreateAccessConfigRequestHeader("orders-key"), "secretKey too short: at least 7"),
        (CreateAccessConfigRequestHeader("orders-key", "long enough", topic_perms="orders=ALL"), "invalid permission 'ALL'"),
        (CreateAccessConfigRequestHeader("orders-key", "long enough", white_remote_address="home"), "invalid address 'home'"),
    ],
)
async def test_an_unusable_account_changes_nothing_and_shows_no_secret(
    place: Place, header: CreateAccessConfigRequestHeader, words: str
) -> None:
    answer = await place.ask(50, header)
    assert answer.code == 209
    assert words in (answer.remark or "")
    assert "short!" not in (answer.remark or "")
    assert place.path.read_text() == FILE


async def test_an_account_is_deleted(place: Place) -> None:
    assert (await place.ask(51, DeleteAccessConfigRequestHeader("plain-key"))).code == 0
    assert "plain-key" not in place.path.read_text()
    answer = await place.ask(51, DeleteAccessConfigRequestHeader("plain-key"))
    assert (answer.code, answer.remark) == (
        210, "The accesskey[plain-key] corresponding to accessConfig has been deleted failed.",
    )  # fmt: skip


async def test_trusted_addresses_are_replaced(place: Place) -> None:
    header = UpdateGlobalWhiteAddrsConfigRequestHeader("10.0.0.*,192.0.2.*")
    assert (await place.ask(53, header)).code == 0
    assert (await place.ask(12_345, account=None)).code == 3, "from now on the test's address is trusted"
    assert (await place.ask(53, UpdateGlobalWhiteAddrsConfigRequestHeader("10.0.0.*", str(place.path)))).code == 0
    assert (await place.ask(12_345, account=None)).code == 1


@pytest.mark.parametrize("path", ["/etc/passwd", "../plain_acl.yml"])
async def test_only_account_files_can_be_changed(place: Place, path: str) -> None:
    answer = await place.ask(53, UpdateGlobalWhiteAddrsConfigRequestHeader("*", path))
    assert answer.code == 211
    assert f"{path} is not an account file" in (answer.remark or "")


async def test_the_accounts_and_their_versions_are_shown(place: Place) -> None:
    fields = (await place.ask(52)).ext_fields()
    assert json.loads(fields["allAclFileVersion"]) == {str(place.path): {"timestamp": 0, "counter": 0}}
    assert json.loads(fields["version"]) == {"timestamp": 0, "counter": 0}
    assert (fields["brokerName"], fields["clusterName"]) == ("broker-a", "DefaultCluster")
    answer = await place.ask(54)
    assert SECRET.encode() not in answer.body
    body = json.loads(answer.body)
    assert [account["accessKey"] for account in body["plainAccessConfigs"]] == ["admin-key", "plain-key"]
    assert body["globalWhiteAddrs"] == []


@pytest.mark.parametrize("code", [50, 51, 53, 54])
async def test_only_an_admin_sees_and_changes_accounts(place: Place, code: int) -> None:
    remark = (await place.ask(code, account="plain-key")).remark or ""
    assert "Need admin permission" in remark


async def test_a_changed_file_is_in_force_within_seconds_and_a_mistake_is_not(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.001)
    following = asyncio.create_task(place.access.follow())

    async def until_logged(text: str) -> None:
        async with asyncio.timeout(30):
            while text not in caplog.text:  # noqa: ASYNC110 (nothing signals it)
                await asyncio.sleep(0.001)

    place.path.write_text(FILE.replace("plain-key", "newer-key"))
    await until_logged("accounts reloaded: 2")
    assert (await place.ask(12_345, account="newer-key")).code == 3
    place.path.write_text(FILE.replace(SECRET, "tiny!"))
    await until_logged("stay in use")
    assert (await place.ask(12_345, account="admin-key")).code == 3
    assert "line 3: account 'admin-key'" in caplog.text
    assert "tiny!" not in caplog.text
    assert caplog.text.count("stay in use") == 1
    following.cancel()


def test_where_everybody_may_come_in_the_requests_say_so() -> None:
    dispatcher = Dispatcher()
    dispatcher.add(NoAclProcessor().handlers)
    wire = Wire()
    for code in (50, 51, 52, 53, 54):
        dispatcher.on_requests(wire, FrameDecoder().feed(encode_request(code, opaque=1)))  # type: ignore[arg-type]
    assert [answer.code for answer in wire.answers] == [209, 210, 1, 211, 1]
    assert all("set aclEnable=true" in (answer.remark or "") for answer in wire.answers)


def test_a_thousand_refusals_are_a_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    log = RefusalLog()
    for number in range(1000):
        log.note("192.0.2.7", 310, "No acl config for x\nforged line")
        log.note(f"192.0.2.{number % 250}", 310, f"No acl config for {number}")
    assert len(caplog.records) == 100
    assert all("\n" not in record.getMessage() for record in caplog.records)
    for _ in range(60):
        log.summarize()
    assert caplog.records[-1].getMessage() == "refused 999 more requests of the kinds above, and 901 of other kinds"
