"""Bodies of requests and responses, as JSON values that are valid before they are changed."""

# ruff: noqa: E501

from typing import Any

from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode
from tests.lab.fuzz.values import GROUPS, TOPICS, Values

_SUBSCRIPTION = {
    "topic": "orders",
    "subString": "a || b",
    "tagsSet": ["a", "b"],
    "codeSet": [97, 98],
    "subVersion": 1,
    "expressionType": "TAG",
}
_QUEUE = {"topic": "orders", "brokerName": "broker-a", "queueId": 0}
_TOPIC = {
    "topicName": "orders",
    "readQueueNums": 4,
    "writeQueueNums": 4,
    "perm": 6,
    "topicFilterType": "SINGLE_TAG",
    "topicSysFlag": 0,
    "order": False,
}
_BROKER = {"cluster": "DefaultCluster", "brokerName": "broker-a", "brokerAddrs": {"0": "127.0.0.1:10911"}}
_TRANSACTION = {
    "state": "pending",
    "halfOffset": 0,
    "transactionId": "T1",
    "producerGroup": "orders",
    "topic": "orders",
    "keys": ["k"],
}


def request_body(values: Values, code: int) -> bytes:
    """Returns a plausible body of a request with this code."""
    chance = values.chance
    if code in _REQUESTS and chance.random() < 0.9:
        return values.json_bytes(_REQUESTS[code](values))
    if code in (RequestCode.SEND_BATCH_MESSAGE,) and chance.random() < 0.9:
        batch = b"".join(_in_batch(values) for _ in range(chance.randrange(1, 6)))
        return values.bytes(batch) if chance.random() < 0.4 else batch
    if code in (RequestCode.CHECK_TRANSACTION_STATE, RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT) or chance.random() < 0.05:
        return values.record()
    return chance.choice((b"", b"body", b"{}", chance.randbytes(chance.randrange(300)), values.json_bytes(values.json())))


def answer_body(values: Values, code: int) -> bytes:
    """Returns a plausible body of the response to a request with this code."""
    chance = values.chance
    if code in (RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID):
        return b"".join(values.record() for _ in range(chance.randrange(5)))
    if code in _ANSWERS:
        return values.json_bytes(_ANSWERS[code](values))
    return chance.choice((b"", b"{}", b"null", chance.randbytes(20), values.json_bytes(values.json())))


def _in_batch(values: Values) -> bytes:
    body, properties = values.chance.randbytes(20), values.properties().encode()[:60_000]
    size = 4 + 4 + 4 + 4 + 4 + len(body) + 2 + len(properties)
    return b"".join(
        (size.to_bytes(4), bytes(4), bytes(4), bytes(4), len(body).to_bytes(4), body, len(properties).to_bytes(2), properties)
    )


def _heartbeat(values: Values) -> Any:
    group = values.chance.choice(GROUPS)
    return {
        "clientID": f"127.0.0.1@{values.chance.randrange(20)}",
        "producerDataSet": [{"groupName": group}],
        "consumerDataSet": [
            {
                "groupName": group,
                "consumeType": values.chance.choice(("CONSUME_PASSIVELY", "CONSUME_ACTIVELY")),
                "messageModel": values.chance.choice(("CLUSTERING", "BROADCASTING")),
                "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
                "subscriptionDataSet": [{**_SUBSCRIPTION, "topic": values.chance.choice(TOPICS)}],
            }
        ],
    }


def _locks(values: Values) -> Any:
    return {"consumerGroup": "credits", "clientId": "c", "mqSet": [{**_QUEUE, "queueId": values.chance.randrange(4)}]}


def _registration(values: Values) -> Any:
    name = values.chance.choice(TOPICS)
    table = {name: {**_TOPIC, "topicName": name, "readQueueNums": values.chance.choice((1, 4, 2**31 - 1, -1))}}
    wrapper = {
        "topicConfigTable": table,
        "dataVersion": {"timestamp": 1, "counter": values.chance.randrange(9), "stateVersion": 0},
    }
    return {"topicConfigSerializeWrapper": wrapper, "filterServerList": []}


_REQUESTS = {
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.LOCK_BATCH_MQ: _locks,
    RequestCode.UNLOCK_BATCH_MQ: _locks,
    RequestCode.REGISTER_BROKER: _registration,
    RequestCode.CHECK_CLIENT_CONFIG: lambda values: {
        "clientId": "c", "group": "credits", "subscriptionData": {**_SUBSCRIPTION, "expressionType": values.chance.choice(("TAG", "SQL92"))},
    },
    RequestCode.RESET_CONSUMER_CLIENT_OFFSET: lambda values: {
        "offsetTable": [{**_QUEUE, "offset": values.number("offset")}] if values.chance.random() < 0.5 else {}
    },
}  # fmt: skip
_QUEUE_DATA = {"brokerName": "broker-a", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6, "topicSysFlag": 0}
_ANSWERS = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: lambda values: {
        "queueDatas": [{**_QUEUE_DATA, "readQueueNums": values.chance.choice((4, 0, -1, 2**31 - 1, 70_000))}], "brokerDatas": [_BROKER], "filterServerTable": {},
    },
    RequestCode.GET_BROKER_CLUSTER_INFO: lambda values: {
        "brokerAddrTable": {"broker-a": _BROKER}, "clusterAddrTable": {"DefaultCluster": ["broker-a"]},
    },
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: lambda values: {"consumerIdList": ["a", "b", values.odd_text()]},
    RequestCode.LOCK_BATCH_MQ: lambda values: {"lockOKMQSet": [_QUEUE]},
    AdminRequestCode.LIST_PENDING_TRANSACTIONS: lambda values: {"transactions": [_TRANSACTION], "total": 1},
    RequestCode.GET_ALL_TOPIC_CONFIG: lambda values: {"topicConfigTable": {"orders": _TOPIC}},
}  # fmt: skip
