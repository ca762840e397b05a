"""Tests access control: the order of RocketMQ's checks, its error texts, and each request's permissions, in both serializers."""

import dataclasses

import pytest

from rocketmq_broker.acl import AccessDenied, AccessRules, Account, AccountMistake, SessionCredentials
from rocketmq_broker.acl.needs import ADMIN_CODES, AUDITOR_CODES, FINDERS, StoredUnder
from rocketmq_broker.acl.remote_address import parse_remote_addresses
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.protocol.bodies.group import LockBatchRequestBody
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, SerializeType
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.ext_fields import encode_binary, encode_json

SECRET = "a long secret"
IP = "192.0.2.7"
ORDERS = Account(
    access_key="orders-key",
    secret_key=SECRET,
    default_topic_perm="DENY",
    default_group_perm="DENY",
    topic_perms=("orders=PUB", "credits=SUB", "both=PUB|SUB", "closed=DENY"),
    group_perms=("credit-service=SUB", "writers=PUB"),
)
ADMIN = Account(access_key="admin-key", secret_key=SECRET, admin=True)
NARROW_ADMIN = Account(access_key="narrow-admin-key", secret_key=SECRET, admin=True, topic_perms=("orders=PUB",))
RULES = AccessRules([ORDERS, ADMIN, NARROW_ADMIN])


STORED = {
    100: StoredUnder("RMQ_SYS_TRANS_HALF_TOPIC", "orders"),
    150: StoredUnder("RMQ_SYS_TRANS_HALF_TOPIC", "credits"),
    200: StoredUnder("credits", "credits"),
    250: StoredUnder("orders", "orders"),
}


SENT = {"producerGroup": "p", "topic": "orders", "defaultTopic": "TBW102", "defaultTopicQueueNums": "4", "queueId": "0",
        "sysFlag": "0", "bornTimestamp": "1", "flag": "0"}  # fmt: skip
SENT_V2 = {"a": "p", "b": "orders", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}
PULLED = {"consumerGroup": "credit-service", "topic": "credits", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32",
          "sysFlag": "0", "commitOffset": "0", "suspendTimeoutMillis": "0", "subVersion": "0"}  # fmt: skip
WHOLE: dict[int, dict[str, str]] = {
    **dict.fromkeys((RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE), SENT),
    **dict.fromkeys((RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2), SENT_V2),
    **dict.fromkeys((RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE), PULLED),
    RequestCode.END_TRANSACTION: {"producerGroup": "p", "tranStateTableOffset": "0", "commitOrRollback": "8", "msgId": "m"},
    RequestCode.QUERY_MESSAGE: {"key": "k", "maxNum": "1", "beginTimestamp": "0", "endTimestamp": "1"},
    RequestCode.CONSUMER_SEND_MSG_BACK: {"offset": "999", "delayLevel": "0"},
    RequestCode.UPDATE_CONSUMER_OFFSET: {"queueId": "0", "commitOffset": "0"},
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: {"timestamp": "-1", "isForce": "true"},
    RequestCode.GET_CONSUMER_RUNNING_INFO: {"clientId": "c"},
}
"""What each request has to say beside what a test says of it."""


def request(
    code: int,
    fields: dict[str, str] | None = None,
    body: bytes = b"",
    *,
    account: str | None = "orders-key",
    secret: str = SECRET,
    serializer: SerializeType = SerializeType.JSON,
) -> RemotingCommand:
    """Returns a request as decoded from its frame. It is signed unless `account` is None."""
    complete = {**WHOLE.get(code, {}), **(fields or {})}
    if account is not None:
        complete = SessionCredentials(account, secret).signed(complete, body)
    command = RemotingCommand(code=code, opaque=1, body=body, serialize_type=serializer)
    if serializer is SerializeType.JSON:
        command.json_fields = type(command.json_fields)(encode_json(complete))
    else:
        command.binary_fields = encode_binary(complete)
    return command


def refusal(command: RemotingCommand, *, rules: AccessRules = RULES, ip: str = IP) -> str | None:
    """Returns the reason why the request is refused, or None if it is allowed."""
    try:
        rules.check(command, ip, STORED.get)
    except AccessDenied as error:
        return str(error)
    return None


def heartbeat(groups: dict[str, list[str]]) -> bytes:
    consumers = [
        ConsumerData(group_name=group, subscription_data_set=[SubscriptionData(topic=topic) for topic in topics])
        for group, topics in groups.items()
    ]
    return HeartbeatData(client_id="c", producer_data_set=[ProducerData("p")], consumer_data_set=consumers).encode()


def message_id(commit_log_offset: int) -> str:
    return offset_message_id(bytes(8), commit_log_offset)


def lock(group: str) -> bytes:
    return LockBatchRequestBody(consumer_group=group, client_id="c").encode()


@pytest.mark.parametrize("serializer", SerializeType)
def test_a_signed_request_for_what_the_account_may_do_comes_in(serializer: SerializeType) -> None:
    assert refusal(request(RequestCode.SEND_MESSAGE_V2, {"b": "orders", "i": ""}, b"x", serializer=serializer)) is None


@pytest.mark.parametrize("serializer", SerializeType)
def test_refusals_are_in_rocketmqs_words(serializer: SerializeType) -> None:
    assert refusal(request(310, {"b": "orders"}, account=None, serializer=serializer)) == "No accessKey is configured"
    assert refusal(request(310, {"b": "orders"}, account="stranger", serializer=serializer)) == "No acl config for stranger"
    wrong = request(310, {"b": "orders"}, secret="another secret", serializer=serializer)
    assert refusal(wrong) == "Check signature failed for accessKey=orders-key"
    assert refusal(request(310, {"b": "credits"}, serializer=serializer)) == "No default permission for topic:credits"
    assert refusal(request(38, {"consumerGroup": "g"}, serializer=serializer)) == "No default permission for group:g"
    assert refusal(request(17, {"topic": "new"}, serializer=serializer)) == (
        "Need admin permission for request code=17, but accessKey=orders-key is not"
    )


@pytest.mark.parametrize(
    ("code", "fields", "body", "is_allowed"),
    [
        (RequestCode.SEND_MESSAGE, {"topic": "orders"}, b"", True),
        (RequestCode.SEND_MESSAGE, {"topic": "credits"}, b"", False),
        (RequestCode.SEND_MESSAGE, {"topic": "closed"}, b"", False),
        (RequestCode.SEND_MESSAGE, {"topic": "unheard-of"}, b"", False),
        (RequestCode.SEND_MESSAGE, {"topic": "%RETRY%credit-service", "group": "x"}, b"", True),
        (RequestCode.SEND_MESSAGE, {"topic": "%RETRY%others"}, b"", False),
        (RequestCode.SEND_MESSAGE_V2, {"b": "%RETRY%others", "a": "credit-service"}, b"", False),
        (RequestCode.SEND_MESSAGE_V2, {"b": "%RETRY%writers", "a": "writers"}, b"", False),
        (RequestCode.SEND_BATCH_MESSAGE, {"b": "orders"}, b"", True),
        (RequestCode.SEND_BATCH_MESSAGE, {"b": "credits"}, b"", False),
        (RequestCode.SEND_REPLY_MESSAGE, {"topic": "DefaultCluster_REPLY_TOPIC"}, b"", True),
        (RequestCode.SEND_REPLY_MESSAGE, {"topic": "credits"}, b"", False),
        (RequestCode.SEND_REPLY_MESSAGE_V2, {"b": "DefaultCluster_REPLY_TOPIC"}, b"", True),
        (RequestCode.SEND_REPLY_MESSAGE_V2, {"b": "credits"}, b"", False),
        (RequestCode.END_TRANSACTION, {"commitLogOffset": "100"}, b"", True),
        (RequestCode.END_TRANSACTION, {"commitLogOffset": "150"}, b"", False),
        (RequestCode.END_TRANSACTION, {"commitLogOffset": "999"}, b"", True),
        (RequestCode.END_TRANSACTION, {"commitLogOffset": "-1"}, b"", True),
        (RequestCode.PULL_MESSAGE, {"topic": "credits", "consumerGroup": "credit-service"}, b"", True),
        (RequestCode.PULL_MESSAGE, {"topic": "orders", "consumerGroup": "credit-service"}, b"", False),
        (RequestCode.PULL_MESSAGE, {"topic": "credits", "consumerGroup": "others"}, b"", False),
        (RequestCode.PULL_MESSAGE, {"topic": "%RETRY%credit-service", "consumerGroup": "credit-service"}, b"", True),
        (RequestCode.PULL_MESSAGE, {"topic": "%RETRY%others", "consumerGroup": "credit-service"}, b"", False),
        (RequestCode.LITE_PULL_MESSAGE, {"topic": "orders", "consumerGroup": "credit-service"}, b"", False),
        (RequestCode.QUERY_MESSAGE, {"topic": "credits"}, b"", True),
        (RequestCode.QUERY_MESSAGE, {"topic": "orders"}, b"", False),
        (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "200"}, b"", True),
        (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "250"}, b"", False),
        (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "100"}, b"", False),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "credit-service"}, b"", True),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "others"}, b"", False),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "credit-service", "offset": "200"}, b"", True),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "credit-service", "offset": "250"}, b"", False),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "credit-service", "offset": "100"}, b"", False),
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "credit-service"}, b"", True),
        (RequestCode.UNREGISTER_CLIENT, {"clientID": "c", "consumerGroup": "others"}, b"", False),
        (RequestCode.UNREGISTER_CLIENT, {"clientID": "c", "producerGroup": "p"}, b"", True),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "credits", "consumerGroup": "credit-service"}, b"", True),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "credits", "consumerGroup": "others"}, b"", False),
        (RequestCode.HEART_BEAT, {}, heartbeat({}), True),
        (RequestCode.HEART_BEAT, {}, heartbeat({"credit-service": ["credits", "%RETRY%credit-service"]}), True),
        (RequestCode.HEART_BEAT, {}, heartbeat({"credit-service": ["credits", "orders"]}), False),
        (RequestCode.HEART_BEAT, {}, heartbeat({"credit-service": ["credits"], "others": []}), False),
        (RequestCode.LOCK_BATCH_MQ, {}, lock("credit-service"), True),
        (RequestCode.LOCK_BATCH_MQ, {}, lock("others"), False),
        (RequestCode.UNLOCK_BATCH_MQ, {}, lock("others"), False),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, {"topic": "credits", "group": "credit-service"}, b"", True),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, {"topic": "credits", "group": "others"}, b"", False),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "credit-service", "destGroup": "others"}, b"", False),
        (
            RequestCode.CLONE_GROUP_OFFSET,
            {"srcGroup": "credit-service", "destGroup": "credit-service", "topic": "orders"},
            b"",
            False,
        ),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "others"}, b"", False),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "credit-service", "msgId": message_id(200)}, b"", True),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "credit-service", "msgId": message_id(250)}, b"", False),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "credit-service", "msgId": message_id(100)}, b"", False),
        (RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "credit-service"}, b"", True),
        (RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "others"}, b"", False),
        (RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": "credits", "group": "credit-service"}, b"", True),
        (RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": "credits", "group": "others"}, b"", False),
        (RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": "0"}, b"", True),
        (RequestCode.GET_BROKER_RUNTIME_INFO, {}, b"", True),
        (RequestCode.GET_TOPIC_CONFIG, {"topic": "orders"}, b"", True),
        (AdminRequestCode.COUNT_PARKED_MESSAGES, {}, b"", True),
        (12345, {}, b"", True),
    ],
)
def test_each_request_needs_what_the_table_in_needs_says(
    code: int, fields: dict[str, str], body: bytes, is_allowed: bool
) -> None:
    assert (refusal(request(code, fields, body)) is None) is is_allowed
    assert refusal(request(code, fields, body, account="admin-key")) is None


@pytest.mark.parametrize(
    "code",
    [
        *(17, 25, 200, 207, 215),
        *(50, 51, 53, 54),
        RequestCode.RESUME_CHECK_HALF_MESSAGE,
        RequestCode.DELETE_EXPIRED_COMMITLOG,
        RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
        RequestCode.CLEAN_UNUSED_TOPIC,
        *(set(AdminRequestCode) - {AdminRequestCode.COUNT_PARKED_MESSAGES}),
    ],
)
def test_what_only_an_admin_may_do(code: int) -> None:
    assert refusal(request(code)) == f"Need admin permission for request code={code}, but accessKey=orders-key is not"
    assert refusal(request(code, account="admin-key")) is None


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.PULL_MESSAGE, {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "consumerGroup": "credit-service"}),
        (RequestCode.PULL_MESSAGE, {"topic": "RMQ_SYS_TRANS_OP_HALF_TOPIC", "consumerGroup": "credit-service"}),
        (RequestCode.PULL_MESSAGE, {"topic": "TRANS_CHECK_MAX_TIME_TOPIC", "consumerGroup": "credit-service"}),
        (RequestCode.PULL_MESSAGE, {"topic": "rmq_sys_PARKED_MARK_TOPIC", "consumerGroup": "credit-service"}),
        (RequestCode.QUERY_MESSAGE, {"topic": "RMQ_SYS_TRANS_HALF_TOPIC"}),
        (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "100"}),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "credits", "consumerGroup": "CID_RMQ_SYS_TRANS"}),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "credit-service", "destGroup": "CID_RMQ_SYS_TRANS"}),
        (RequestCode.SEND_MESSAGE_V2, {"b": "RMQ_SYS_TRANS_OP_HALF_TOPIC"}),
    ],
)
def test_the_brokers_own_topics_and_groups_are_nobodys_whatever_the_file_says(code: int, fields: dict[str, str]) -> None:
    own = ("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "rmq_sys_PARKED_MARK_TOPIC")
    generous = Account(
        access_key="generous-key",
        secret_key=SECRET,
        default_topic_perm="PUB|SUB",
        default_group_perm="PUB|SUB",
        topic_perms=tuple(f"{topic}=PUB|SUB" for topic in own),
        group_perms=("CID_RMQ_SYS_TRANS=SUB",),
    )
    found = refusal(request(code, fields, account="generous-key"), rules=AccessRules([generous]))
    assert found is not None
    assert found.startswith("Need admin permission")


@pytest.mark.parametrize("serializer", SerializeType)
@pytest.mark.parametrize(
    ("code", "name"), [(RequestCode.END_TRANSACTION, "commitLogOffset"), (RequestCode.VIEW_MESSAGE_BY_ID, "offset")]
)
@pytest.mark.parametrize("spelling", ["250.0", "2.5e2", "25e1", "+250", " 250", "0250", "२५०", "2_50", "0xfa", "x", "9" * 5000])
def test_an_offset_that_is_no_plain_number_is_refused(code: int, name: str, spelling: str, serializer: SerializeType) -> None:
    stranger = Account(access_key="stranger-key", secret_key=SECRET)
    with pytest.raises(ProtocolError, match=f"the custom field <{name}> is illegal"):
        refusal(request(code, {name: spelling}, account="stranger-key", serializer=serializer), rules=AccessRules([stranger]))


AUDITOR = Account(access_key="auditor-key", secret_key=SECRET, auditor=True)


@pytest.mark.parametrize(
    ("code", "fields"),
    [
        (RequestCode.PULL_MESSAGE, {"topic": "orders", "consumerGroup": "others"}),
        (RequestCode.PULL_MESSAGE, {"topic": "RMQ_SYS_TRANS_HALF_TOPIC", "consumerGroup": "CID_RMQ_SYS_TRANS"}),
        (RequestCode.LITE_PULL_MESSAGE, {"topic": "RMQ_SYS_TRANS_OP_HALF_TOPIC", "consumerGroup": "others"}),
        (RequestCode.QUERY_MESSAGE, {"topic": "orders"}),
        (RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "100"}),
        (RequestCode.GET_CONSUMER_LIST_BY_GROUP, {"consumerGroup": "others"}),
        (RequestCode.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "others"}),
        (RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, {"topic": "orders", "group": "others"}),
        *((code, {}) for code in sorted(AUDITOR_CODES - set(FINDERS))),
    ],
)
def test_an_auditor_may_look_at_every_topic_and_group_and_at_the_whole_broker(code: int, fields: dict[str, str]) -> None:
    assert refusal(request(code, fields, account="auditor-key"), rules=AccessRules([AUDITOR])) is None


@pytest.mark.parametrize(
    ("code", "fields", "body"),
    [
        (RequestCode.PULL_MESSAGE, {"sysFlag": "1"}, b""),
        (RequestCode.LITE_PULL_MESSAGE, {"sysFlag": "3"}, b""),
        (RequestCode.SEND_MESSAGE_V2, {}, b""),
        (RequestCode.END_TRANSACTION, {"commitLogOffset": "100"}, b""),
        (RequestCode.CONSUMER_SEND_MSG_BACK, {"group": "others"}, b""),
        (RequestCode.UPDATE_CONSUMER_OFFSET, {"topic": "orders", "consumerGroup": "others"}, b""),
        (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, {"topic": "orders", "group": "others"}, b""),
        (RequestCode.CLONE_GROUP_OFFSET, {"srcGroup": "a", "destGroup": "b"}, b""),
        (RequestCode.CONSUME_MESSAGE_DIRECTLY, {"consumerGroup": "others", "msgId": message_id(250)}, b""),
        (RequestCode.HEART_BEAT, {}, heartbeat({"others": ["orders"]})),
        (RequestCode.LOCK_BATCH_MQ, {}, lock("others")),
        *((code, {}, b"") for code in sorted(ADMIN_CODES - AUDITOR_CODES)),
    ],
)
def test_an_auditor_changes_nothing_and_sees_no_account(code: int, fields: dict[str, str], body: bytes) -> None:
    assert refusal(request(code, fields, body, account="auditor-key"), rules=AccessRules([AUDITOR])) is not None


def test_somebody_decided_of_each_request_of_operators_whether_an_auditor_may_send_it() -> None:
    assert {*ADMIN_CODES} & AUDITOR_CODES == {
        AdminRequestCode.LIST_PENDING_TRANSACTIONS,
        AdminRequestCode.SHOW_TRANSACTION,
        AdminRequestCode.LIST_DECIDED_TRANSACTIONS,
        AdminRequestCode.LIST_MARKS,
    }


def test_an_admin_with_permissions_of_its_own_has_no_others() -> None:
    assert refusal(request(310, {"b": "orders"}, account="narrow-admin-key")) is None
    assert refusal(request(310, {"b": "credits"}, account="narrow-admin-key")) == "No default permission for topic:credits"
    assert refusal(request(17, {"topic": "credits"}, account="narrow-admin-key")) is None


def test_every_account_may_leave_message_traces() -> None:
    assert refusal(request(310, {"b": "RMQ_SYS_TRACE_TOPIC"})) is None
    assert refusal(request(11, {"topic": "RMQ_SYS_TRACE_TOPIC", "consumerGroup": "credit-service"})) is not None


def test_a_trusted_address_needs_no_account() -> None:
    rules = AccessRules([ORDERS], [parse_remote_addresses("192.0.2.*")])
    assert refusal(request(17, account=None), rules=rules, ip="192.0.2.200") is None
    assert refusal(request(17, account=None), rules=rules, ip="192.0.3.1") == "No accessKey is configured"


def test_from_an_accounts_own_address_its_name_is_enough() -> None:
    rules = AccessRules([dataclasses.replace(ORDERS, white_remote_address="192.0.2.*")])
    assert refusal(request(17, secret="none of them"), rules=rules, ip="192.0.2.200") is None
    assert refusal(request(17, secret="none of them"), rules=rules, ip="192.0.3.1") is not None


def test_a_body_is_not_read_before_its_signature_was_found_right() -> None:
    nonsense = b"{" * 100
    assert refusal(request(34, {}, nonsense, secret="none of them")) == "Check signature failed for accessKey=orders-key"
    with pytest.raises(ProtocolError):
        refusal(request(34, {}, nonsense))


def test_a_field_given_twice_is_checked_as_it_is_used() -> None:
    command = request(310, {"b": "orders"})
    command.json_fields = type(command.json_fields)(
        bytes(command.json_fields).replace(b'"b":"orders"', b'"b":"orders","b":"credits"')
    )
    assert refusal(command) == "Check signature failed for accessKey=orders-key"
    signed = SessionCredentials("orders-key", SECRET).signed({**SENT_V2, "b": "credits"}, b"")
    command.json_fields = type(command.json_fields)(encode_json(signed).replace(b'"b":', b'"b":"orders","b":'))
    assert refusal(command) == "No default permission for topic:credits"


def test_two_accounts_with_one_key_are_refused() -> None:
    with pytest.raises(AccountMistake, match="duplicate account 'orders-key'"):
        AccessRules([ORDERS, ORDERS])


def test_accounts_do_not_print_their_secret() -> None:
    assert SECRET not in repr(ORDERS)
