"""One question for each request code, to a broker and a name server whose tables are as full as clients can make them.

Each is as large as the code allows. A question that needs a special client, such as a batch with very many keys, has its own row
in `rows`.
"""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Collection, Iterator
from pathlib import Path
from typing import Final

from benchmarks.longest_stop.peer import Peer
from benchmarks.longest_stop.rows.name_server.brokers_of_one_connection import header as registration_header
from benchmarks.longest_stop.rows.name_server.large_registration import registration
from benchmarks.longest_stop.stage import Stage
from rocketmq_broker.message.configs import SubscriptionGroupConfig, TopicConfig
from rocketmq_broker.protocol.bodies.heartbeat import ConsumerData, HeartbeatData, ProducerData, SubscriptionData
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.store import ConsumerOffsets, SubscriptionGroups, TopicConfigs

SETTINGS: Final = {"enablePropertyFilter": "true"}

Fields = dict[str, object]
Question = tuple[Fields, bytes]

TOPICS: Final = 9_500
GROUPS: Final = 4_900
QUEUES: Final = 10_000
OFFSETS_OF_A_GROUP: Final = 36
MEMBERS: Final = 500
PRODUCER_GROUPS: Final = 14_000
GREEDY_PRODUCERS: Final = 12
LARGE: Final = "large"
GROUP: Final = "g-0"
_LOCKED: Final = 24_000
_MESSAGE: Final[Fields] = {
    "producerGroup": "p", "topic": LARGE, "defaultTopic": "TBW102", "defaultTopicQueueNums": 4, "queueId": 0, "sysFlag": 0,
    "bornTimestamp": 1, "flag": 0, "properties": "KEYS\x01" + " ".join(["k"] * 1000), "reconsumeTimes": 0, "unitMode": False,
}  # fmt: skip
_SHORT: Final[Fields] = dict(zip("abcdefghijk", (*_MESSAGE.values(),)[:11], strict=True))
_QUEUE: Final[Fields] = {"topic": LARGE, "queueId": 0}
_OF_GROUP: Final[Fields] = {"consumerGroup": GROUP, "topic": LARGE, "group": GROUP}
_BATCH: Final = (b"\x00\x00\x00\x16" + bytes(18)) * 65_536
_LOCKS: Final = json.dumps(
    {
        "consumerGroup": GROUP,
        "clientId": "c",
        "mqSet": [{"topic": LARGE, "brokerName": "b", "queueId": n} for n in range(_LOCKED)],
    },
    separators=(",", ":"),
).encode()
_PULL: Final[Fields] = {
    "consumerGroup": GROUP, "topic": LARGE, "queueId": 0, "queueOffset": 0, "maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0,
    "suspendTimeoutMillis": 0, "subscription": "||".join(f"t{n}" for n in range(2000)), "subVersion": 0,
}  # fmt: skip
_POP: Final[Fields] = {
    "consumerGroup": GROUP, "topic": LARGE, "queueId": -1, "maxMsgNums": 32, "invisibleTime": 1000, "pollTime": 0, "initMode": 0,
}  # fmt: skip
_POPPED: Final[Fields] = {"consumerGroup": GROUP, "topic": LARGE, "queueId": 0}
_HANDLE: Final = "0 1700000000000 60000 0 0 b 0 0"
_ACK: Final = {"c": GROUP, "t": LARGE, "so": 0, "q": 0, "rq": 0, "pt": 1, "it": 60_000, "b": "/" * 1000}
_ACKS: Final = json.dumps({"brokerName": "b", "acks": [_ACK] * 1000}).encode()
_ASSIGNMENT: Final = json.dumps({"topic": LARGE, "consumerGroup": "crowd", "clientId": "member-1"}).encode()
_MODE: Final = json.dumps({"topic": LARGE, "consumerGroup": GROUP, "mode": "POP"}).encode()
_SQL: Final[Fields] = {"topic": LARGE, "subString": "a=1 AND " * 3000 + "a=1", "expressionType": "SQL92"}
_FILTER: Final = json.dumps({"clientId": "c", "group": GROUP, "subscriptionData": _SQL}).encode()
_CONFIG: Final = "\n".join(f"unknown{number}=1" for number in range(20_000)).encode()
_KV: Final[Fields] = {"namespace": "n", "key": "k", "value": "v" * 1000}
_BROKER: Final[Fields] = {"brokerName": "b-0", "clusterName": "DefaultCluster", "brokerAddr": "10.1.0.0:10911", "brokerId": 0}


def _crowd(number: int) -> bytes:
    consumer = ConsumerData(group_name="crowd", subscription_data_set=[SubscriptionData(topic=LARGE)])
    return HeartbeatData(client_id=f"member-{number}", consumer_data_set=[consumer]).encode()


def _greedy(number: int) -> bytes:
    producers = [ProducerData(group_name=f"p-{group}") for group in range(PRODUCER_GROUPS)]
    return HeartbeatData(client_id=f"greedy-{number}", producer_data_set=producers).encode()


AT_BROKER: Final[dict[int, Question]] = {
    # Clients whose heartbeats stop are forgotten after two minutes: questions about them come first.
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: ({"consumerGroup": "crowd"}, b""),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: ({"consumerGroup": "crowd"}, b""),
    RequestCode.GET_PRODUCER_CONNECTION_LIST: ({"producerGroup": "p-2"}, b""),
    RequestCode.GET_ALL_PRODUCER_INFO: ({}, b""),
    RequestCode.SEND_MESSAGE: (_MESSAGE, bytes(4 << 20)),
    RequestCode.SEND_MESSAGE_V2: (_SHORT, bytes(4 << 20)),
    RequestCode.SEND_BATCH_MESSAGE: ({**_SHORT, "i": "WAIT\x01true", "m": True}, _BATCH),
    RequestCode.SEND_REPLY_MESSAGE: (_MESSAGE, b"x"),
    RequestCode.SEND_REPLY_MESSAGE_V2: (_SHORT, b"x"),
    RequestCode.CONSUMER_SEND_MSG_BACK: ({"offset": 0, "group": GROUP, "delayLevel": 3, "originTopic": LARGE}, b""),
    RequestCode.END_TRANSACTION: (
        {"producerGroup": "p", "tranStateTableOffset": 0, "commitLogOffset": 0, "commitOrRollback": 8, "msgId": "m"}, b"",
    ),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: ({"msgId": "7F00000100002A9F0000000000000000"}, b""),
    RequestCode.PULL_MESSAGE: (_PULL, b""),
    RequestCode.LITE_PULL_MESSAGE: (_PULL, b""),
    RequestCode.POP_MESSAGE: (_POP, b""),
    RequestCode.NOTIFICATION: ({**_POPPED, "queueId": -1, "pollTime": 0}, b""),
    RequestCode.ACK_MESSAGE: ({**_POPPED, "extraInfo": _HANDLE, "offset": 0}, b""),
    RequestCode.BATCH_ACK_MESSAGE: ({}, _ACKS),
    RequestCode.CHANGE_MESSAGE_INVISIBLETIME: ({**_POPPED, "extraInfo": _HANDLE, "offset": 0, "invisibleTime": 1000}, b""),
    RequestCode.QUERY_ASSIGNMENT: ({}, _ASSIGNMENT),
    RequestCode.SET_MESSAGE_REQUEST_MODE: ({}, _MODE),
    RequestCode.QUERY_MESSAGE: ({"topic": LARGE, "key": "k", "maxNum": 64, "beginTimestamp": 0, "endTimestamp": 1 << 50}, b""),
    RequestCode.VIEW_MESSAGE_BY_ID: ({"offset": 0}, b""),
    RequestCode.QUERY_CONSUMER_OFFSET: ({**_OF_GROUP, "queueId": 0}, b""),
    RequestCode.UPDATE_CONSUMER_OFFSET: ({**_OF_GROUP, "queueId": 0, "commitOffset": 1}, b""),
    RequestCode.GET_MAX_OFFSET: (_QUEUE, b""),
    RequestCode.GET_MIN_OFFSET: (_QUEUE, b""),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: ({**_QUEUE, "timestamp": 1}, b""),
    RequestCode.GET_EARLIEST_MSG_STORETIME: (_QUEUE, b""),
    RequestCode.UNREGISTER_CLIENT: ({"clientID": "c", "producerGroup": "p-1", "consumerGroup": GROUP}, b""),
    RequestCode.CHECK_CLIENT_CONFIG: ({}, _FILTER),
    RequestCode.LOCK_BATCH_MQ: ({}, _LOCKS),
    RequestCode.UNLOCK_BATCH_MQ: ({}, _LOCKS),
    RequestCode.UPDATE_AND_CREATE_TOPIC: (
        {"topic": "another", "defaultTopic": "TBW102", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6,
         "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": False}, b"",
    ),
    RequestCode.DELETE_TOPIC_IN_BROKER: ({"topic": "t-1"}, b""),
    RequestCode.GET_ALL_TOPIC_CONFIG: ({}, b""),
    RequestCode.GET_TOPIC_CONFIG: ({"topic": LARGE}, b""),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER: ({}, b""),
    RequestCode.GET_TOPIC_STATS_INFO: ({"topic": LARGE}, b""),
    RequestCode.QUERY_TOPIC_CONSUME_BY_WHO: ({"topic": LARGE}, b""),
    RequestCode.CLEAN_UNUSED_TOPIC: ({}, b""),
    RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: ({}, b'{"groupName":"another"}'),
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG: ({}, b""),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: ({"groupName": "g-1", "removeOffset": True}, b""),
    RequestCode.GET_BROKER_RUNTIME_INFO: ({}, b""),
    RequestCode.GET_BROKER_CONFIG: ({}, b""),
    RequestCode.UPDATE_BROKER_CONFIG: ({}, _CONFIG),
    RequestCode.GET_ALL_DELAY_OFFSET: ({}, b""),
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: ({}, b""),
    RequestCode.DELETE_EXPIRED_COMMITLOG: ({}, b""),
    RequestCode.GET_CONSUME_STATS: ({"consumerGroup": GROUP}, b""),
    RequestCode.GET_BROKER_CONSUME_STATS: ({"isOrder": False}, b""),
    RequestCode.GET_ALL_CONSUMER_OFFSET: ({}, b""),
    RequestCode.QUERY_CONSUME_TIME_SPAN: (_OF_GROUP, b""),
    RequestCode.QUERY_CORRECTION_OFFSET: ({"filterGroups": "", "compareGroup": GROUP, "topic": LARGE}, b""),
    RequestCode.CLONE_GROUP_OFFSET: ({"srcGroup": GROUP, "destGroup": "g-2", "topic": "", "offline": True}, b""),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: ({"topic": LARGE, "group": GROUP, "timestamp": 1, "isForce": True}, b""),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: ({"topic": LARGE, "group": GROUP}, b""),
    RequestCode.GET_CONSUMER_RUNNING_INFO: ({"consumerGroup": "crowd", "clientId": "nobody"}, b""),
    RequestCode.CONSUME_MESSAGE_DIRECTLY: ({"consumerGroup": "crowd", "clientId": "nobody", "msgId": "0" * 32}, b""),
    RequestCode.QUERY_CONSUME_QUEUE: ({"topic": LARGE, "queueId": 0, "index": 0, "count": 1 << 30, "consumerGroup": GROUP}, b""),
    RequestCode.VIEW_BROKER_STATS_DATA: ({"statsName": "TOPIC_PUT_NUMS", "statsKey": LARGE}, b""),
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: ({"accessKey": "a" * 20, "secretKey": "s" * 20}, b""),
    RequestCode.DELETE_ACL_CONFIG: ({"accessKey": "a" * 20}, b""),
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: ({"globalWhiteAddrs": ",".join(["10.0.0.*"] * 2000)}, b""),
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO: ({}, b""),
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: ({}, b""),
    AdminRequestCode.LIST_PENDING_TRANSACTIONS: ({"producerGroup": "", "count": 1 << 30, "first": 0}, b""),
    AdminRequestCode.SHOW_TRANSACTION: ({"transactionId": "nobody", "msgId": "7F00000100002A9F0000000000000000"}, b""),
    AdminRequestCode.DECIDE_TRANSACTION: ({"transactionId": "nobody", "commit": True, "reason": "bench"}, b""),
    AdminRequestCode.LIST_DECIDED_TRANSACTIONS: ({"count": 1 << 30}, b""),
    AdminRequestCode.COUNT_PARKED_MESSAGES: ({}, b""),
    AdminRequestCode.LIST_MARKS: ({"topic": "%DLQ%g-0", "queueId": 0, "queueOffset": 0, "count": 1 << 30}, b""),
    AdminRequestCode.RETRY_DEAD_LETTER: ({"consumerGroup": GROUP, "offset": 0, "reason": "bench"}, b""),
    AdminRequestCode.DISMISS_DEAD_LETTER: ({"consumerGroup": GROUP, "offset": 0, "reason": "bench"}, b""),
    # At the end: a client that sends no second heartbeat loses its connection.
    RequestCode.HEART_BEAT: ({}, _greedy(0)),
}  # fmt: skip
"""The questions to the broker, by code: the fields of the header and the body."""

AT_NAME_SERVER: Final[dict[int, Question]] = {
    RequestCode.PUT_KV_CONFIG: (_KV, b""),
    RequestCode.GET_KV_CONFIG: (_KV, b""),
    RequestCode.DELETE_KV_CONFIG: (_KV, b""),
    RequestCode.GET_KVLIST_BY_NAMESPACE: (_KV, b""),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: ({}, b""),
    RequestCode.GET_TOPICS_BY_CLUSTER: ({"cluster": "DefaultCluster"}, b""),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: ({}, b""),
    RequestCode.GET_UNIT_TOPIC_LIST: ({}, b""),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: ({}, b""),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: ({}, b""),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: ({"topic": "some-topic-name-1"}, b""),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: (_BROKER, b""),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: (_BROKER, b""),
    RequestCode.GET_NAMESRV_CONFIG: ({}, b""),
    RequestCode.UPDATE_NAMESRV_CONFIG: ({}, _CONFIG),
    RequestCode.REGISTER_BROKER: ({**_BROKER, "haServerAddr": ""}, registration(30_000)),
    RequestCode.QUERY_DATA_VERSION: (_BROKER, b'{"counter":1,"timestamp":1}'),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: ({"topic": "some-topic-name-2"}, b""),
    RequestCode.GET_BROKER_CLUSTER_INFO: ({}, b""),
    RequestCode.UNREGISTER_BROKER: (_BROKER, b""),
}
"""The questions to the name server."""


def fill(root: Path) -> None:
    """Fills the tables of a broker that has not started yet."""
    folder = root / "config"
    topics, groups, offsets = TopicConfigs(folder), SubscriptionGroups(folder), ConsumerOffsets(folder)
    topics.put(TopicConfig(LARGE, QUEUES, QUEUES), 1)
    for number in range(TOPICS):
        topics.put(TopicConfig(f"t-{number}", 8, 8), 1)
    for number in range(GROUPS):
        groups.put(SubscriptionGroupConfig(f"g-{number}"), 1)
        for topic in range(OFFSETS_OF_A_GROUP):
            offsets.commit(f"g-{number}", f"t-{(number + topic) % TOPICS}", 0, 0)
    for queue_id in range(QUEUES):
        offsets.commit(GROUP, LARGE, queue_id, 0)
    for table in (topics, groups, offsets):
        table.persist()


async def cpu_by_code(stage: Stage, only: Collection[str]) -> AsyncIterator[tuple[int, float, str]]:
    """Yields each code, or each named one, with its question's longest turn of the event loop and the answer.

    The turn is CPU time in seconds.
    """
    broker = await stage.connect()
    await broker.ask_all(_frames(RequestCode.SEND_MESSAGE_V2, {**_SHORT, "e": 1}, b"x", 100))
    for number in range(MEMBERS):
        await (await stage.connect()).ask(RequestCode.HEART_BEAT, body=_crowd(number))
    for number in range(1, GREEDY_PRODUCERS):
        await (await stage.connect()).ask(RequestCode.HEART_BEAT, body=_greedy(number))
    async for told in _asked(stage, broker, AT_BROKER, only):
        yield told
    # Not earlier: a connection ends after two idle minutes, and its registrations with it.
    name_server = await stage.connect(stage.name_server)
    for number in range(4):
        await name_server.ask(RequestCode.REGISTER_BROKER, registration_header(f"b-{number}", number), registration(30_000))
    for number in range(100):
        await _ask(name_server, RequestCode.PUT_KV_CONFIG, {**_KV, "key": f"k-{number}"}, b"")
    async for told in _asked(stage, name_server, AT_NAME_SERVER, only):
        yield told


async def _asked(
    stage: Stage, peer: Peer, questions: dict[int, Question], only: Collection[str]
) -> AsyncIterator[tuple[int, float, str]]:
    for code, (fields, body) in questions.items():
        if only and name_of(code) not in only:
            continue
        await stage.settle()
        await stage.watch()
        answer = await _ask(peer, code, fields, body)
        told = ResponseCode(answer.code).name + (f": {answer.remark}" if answer.code else f", {len(answer.body)} bytes")
        yield code, await stage.watched_cpu_s(), told


def name_of(code: int) -> str:
    """Returns the name of the code."""
    return next(codes(code).name for codes in (RequestCode, AdminRequestCode) if code in set(codes))


async def _ask(peer: Peer, code: int, fields: Fields, body: bytes) -> RemotingCommand:
    writing = asyncio.create_task(peer.write(b"".join(_frames(code, fields, body, 1))))
    (answer,) = await peer.answers(1)
    await writing
    return answer


def _frames(code: int, fields: Fields, body: bytes, count: int) -> Iterator[bytes]:
    values = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in fields.items()}
    for opaque in range(count):
        head = {"code": int(code), "flag": 0, "language": "JAVA", "opaque": opaque, "version": 407, "extFields": values}
        encoded = json.dumps(head).encode()
        yield struct.pack(">ii", 4 + len(encoded) + len(body), len(encoded)) + encoded + body
