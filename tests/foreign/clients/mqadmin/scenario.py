"""Defines the actions and the commands of the scenario, which is the same for Apache RocketMQ and this broker."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rocketmq_broker.client import EventLoopThread, Producer
from rocketmq_broker.message import Message, MessageQueue
from tests.foreign.clients.mqadmin.bodies import ask
from tests.foreign.clients.mqadmin.names import BROKER, GROUP, PRODUCERS, TOPIC
from tests.foreign.clients.mqadmin.session import Mqadmin

MESSAGES = 8
QUEUES = 4
PATIENCE_S = 120

BEFORE_CLIENTS: Mapping[str, str] = {
    "clusterList": "clusterList",
    "clusterList, more": "clusterList -m",
    "updateTopic in the cluster": f"updateTopic -c DefaultCluster -t {TOPIC} -r {QUEUES} -w {QUEUES}",
    "updateTopic on the broker": "updateTopic -b {broker} -t OtherTopic -r 6 -w 6 -p 4",
    "updateTopic again": "updateTopic -b {broker} -t OtherTopic -r 3 -w 2 -p 6",
    "updateTopic, ordered": "updateTopic -c DefaultCluster -t OrderedTopic -r 2 -w 2 -o true",
    "updateTopic with an illegal name": "updateTopic -b {broker} -t Illegal:Name",
    "updateTopic of the system": "updateTopic -b {broker} -t TBW102",
    "updateTopicPerm": "updateTopicPerm -c DefaultCluster -t OtherTopic -p 2",
    "updateSubGroup in the cluster": f"updateSubGroup -c DefaultCluster -g {GROUP} -r 3",
    "updateSubGroup on the broker": (
        "updateSubGroup -b {broker} -g other_consumers -s false -m true -d true -q 2 -r 5 -i 0 -w 1 -a false"
    ),
    "getConsumerConfig": "getConsumerConfig -g other_consumers",
    "topicList": "topicList",
    "topicList with clusters": "topicList -c",
    "topicRoute": f"topicRoute -t {TOPIC}",
    "topicRoute of a changed topic": "topicRoute -t OtherTopic",
    "topicRoute as a list": f"topicRoute -t {TOPIC} -l",
    "topicRoute of no topic": "topicRoute -t NoTopic",
    "topicClusterList": f"topicClusterList -t {TOPIC}",
    "topicStatus of an empty topic": f"topicStatus -t {TOPIC}",
    "topicStatus of no topic": "topicStatus -t NoTopic",
    "brokerStatus": "brokerStatus -b {broker}",
    "brokerStatus of the cluster": "brokerStatus -c DefaultCluster",
    "allocateMQ": f"allocateMQ -t {TOPIC} -i 10.0.0.1,10.0.0.2",
    "updateKvConfig": "updateKvConfig -s space -k name -v value",
    "deleteKvConfig": "deleteKvConfig -s space -k name",
    "updateOrderConf": "updateOrderConf -t OrderedTopic -m put -v broker-a:2",
    "get updateOrderConf": "updateOrderConf -t OrderedTopic -m get",
    "consumerProgress of no group": "consumerProgress -g no_such_group",
    "consumerConnection of no group": "consumerConnection -g no_such_group",
    "producerConnection of no group": f"producerConnection -g no_such_group -t {TOPIC}",
    "getNamesrvConfig": "getNamesrvConfig -n {namesrv}",
    "getBrokerConfig": "getBrokerConfig -b {broker}",
}
WITH_CLIENTS: Mapping[str, str] = {
    "statsAll": f"statsAll -t {TOPIC}",
    "statsAll of all topics": "statsAll",
    "topicStatus": f"topicStatus -t {TOPIC}",
    "consumerProgress": "consumerProgress",
    "consumerProgress of a group": f"consumerProgress -g {GROUP}",
    "consumerProgress with clients": f"consumerProgress -g {GROUP} -s true",
    "consumerConnection": f"consumerConnection -g {GROUP}",
    "consumerConnection on the broker": f"consumerConnection -g {GROUP} -b {{broker}}",
    "consumerStatus": f"consumerStatus -g {GROUP}",
    "producerConnection": f"producerConnection -g {PRODUCERS} -t {TOPIC}",
    "producer": "producer -b {broker}",
    "queryMsgById": "queryMsgById -i {offset_id_0}",
    "queryMsgById of two": "queryMsgById -i {offset_id_1},{offset_id_6}",
    "queryMsgById of none": "queryMsgById -i {offset_id_none}",
    "queryMsgById to a consumer": f"queryMsgById -i {{offset_id_3}} -g {GROUP} -d {{consumer}}",
    "queryMsgByUniqueKey": f"queryMsgByUniqueKey -t {TOPIC} -i {{unique_id_2}}",
    "queryMsgByKey": f"queryMsgByKey -t {TOPIC} -k key-3",
    "queryMsgByKey of many": f"queryMsgByKey -t {TOPIC} -k shared",
    "queryMsgByKey of none": f"queryMsgByKey -t {TOPIC} -k nothing",
    "queryMsgByOffset": f"queryMsgByOffset -t {TOPIC} -b {BROKER} -i 1 -o 1",
    "queryMsgByOffset past the end": f"queryMsgByOffset -t {TOPIC} -b {BROKER} -i 1 -o 2",
    "queryCq": f"queryCq -t {TOPIC} -q 1 -i 0 -c 5 -b {{broker}} -g {GROUP}",
    "queryCq without group": f"queryCq -t {TOPIC} -q 1 -i 1 -c 5 -b {{broker}}",
    "queryCq past the end": f"queryCq -t {TOPIC} -q 1 -i 9 -c 5 -b {{broker}}",
    "queryCq of no queue": "queryCq -t NoTopic -q 1 -i 0 -c 5 -b {broker}",
    "printMsg": f"printMsg -t {TOPIC}",
    "printMsg with a tag": f"printMsg -t {TOPIC} -s odd",
    "printMsg without bodies": f"printMsg -t {TOPIC} -d false",
    "printMsg from the middle": f"printMsg -t {TOPIC} -b {{middle_ms}}",
    "printMsg to the middle": f"printMsg -t {TOPIC} -e {{middle_ms}}",
    "printMsgByQueue": f"printMsgByQueue -t {TOPIC} -a {BROKER} -i 1 -p true -d true -f true",
    "consumeMessage": f"consumeMessage -t {TOPIC} -b {BROKER} -i 2 -o 0 -c 2",
    "brokerConsumeStats": "brokerConsumeStats -b {broker}",
    "topicList with consumers": "topicList -c",
    "exportConfigs": "exportConfigs -c DefaultCluster -f {exports}",
    "exportMetadata": "exportMetadata -c DefaultCluster -f {exports}",
    "exportMetadata of topics": "exportMetadata -b {broker} -t -s -f {exports}",
    "exportMetadata of groups": "exportMetadata -b {broker} -g -f {exports}",
    "exportMetrics": "exportMetrics -c DefaultCluster -f {exports}",
    "cloneGroupOffset": f"cloneGroupOffset -s {GROUP} -d cloned_consumers -t {TOPIC} -o true",
    "consumerProgress of the clone": "consumerProgress -g cloned_consumers",
    "resetOffsetByTime of no topic": f"resetOffsetByTime -g {GROUP} -t NoTopic -s now",
}
WHILE_THE_CONSUMER_WAITS: Mapping[str, str] = {
    "resetOffsetByTime not forced": f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s now -f false",
}
"""The consumer is told of the reset, and can leave ten seconds later only. A reset to the middle would have it pull messages
again at that moment, or not: the counts of statsAll would differ from run to run."""
WITHOUT_CONSUMER: Mapping[str, str] = {
    "consumerConnection of a group that left": f"consumerConnection -g {GROUP}",
    "consumerProgress of a group that left": f"consumerProgress -g {GROUP}",
    "consumerProgress of groups that left": "consumerProgress",
    "statsAll of groups that left": "statsAll",
    "topicList of groups that left": "topicList -c",
    "brokerConsumeStats of groups that left": "brokerConsumeStats -b {broker}",
    "queryMsgById without consumer": "queryMsgById -i {offset_id_0}",
    "queryMsgById to a consumer that left": f"queryMsgById -i {{offset_id_3}} -g {GROUP} -d {{consumer}}",
    "resetOffsetByTime without consumer": f"resetOffsetByTime -g {GROUP} -t {TOPIC} -s {{middle_ms}}",
    "consumerProgress after the reset": f"consumerProgress -g {GROUP}",
    "skipAccumulatedMessage": f"skipAccumulatedMessage -g {GROUP} -t {TOPIC}",
    "consumerProgress after skipping": f"consumerProgress -g {GROUP}",
    "sendMessage": f"sendMessage -t {TOPIC} -p hello -k sent-by-hand -c hand -b {BROKER} -i 3",
    "queryMsgByKey of the message sent": f"queryMsgByKey -t {TOPIC} -k sent-by-hand",
    "wipeWritePerm": f"wipeWritePerm -b {BROKER} -n {{namesrv}}",
    "topicRoute without write permission": f"topicRoute -t {TOPIC}",
    "addWritePerm": f"addWritePerm -b {BROKER} -n {{namesrv}}",
    "topicRoute with write permission": f"topicRoute -t {TOPIC}",
    "cleanExpiredCQ": "cleanExpiredCQ -b {broker}",
    "cleanUnusedTopic": "cleanUnusedTopic -b {broker}",
    "deleteExpiredCommitLog": "deleteExpiredCommitLog -b {broker}",
    "updateBrokerConfig": "updateBrokerConfig -b {broker} -k fileReservedTime -v 71",
    "deleteSubGroup": "deleteSubGroup -b {broker} -g other_consumers",
    "deleteTopic": f"deleteTopic -c DefaultCluster -t {TOPIC}",
    "topicList after deletion": "topicList",
    "topicRoute after deletion": f"topicRoute -t {TOPIC}",
    "topicStatus after deletion": f"topicStatus -t {TOPIC}",
    "consumerProgress after deletion": f"consumerProgress -g {GROUP}",
    "queryMsgByKey after deletion": f"queryMsgByKey -t {TOPIC} -k key-3",
    "deleteTopic that there is not": "deleteTopic -c DefaultCluster -t NoTopic",
}
COMMANDS: Mapping[str, str] = {**BEFORE_CLIENTS, **WITH_CLIENTS, **WHILE_THE_CONSUMER_WAITS, **WITHOUT_CONSUMER}


@dataclass(frozen=True, slots=True)
class Place:
    """The addresses of the name server and the broker of the scenario."""

    namesrv_addr: str
    broker_addr: str


@dataclass(frozen=True, slots=True)
class Answers:
    """The output of each command, and the shapes of the requested bodies (see `bodies`)."""

    printed: Mapping[str, str]
    bodies: Mapping[str, Any]


def play(place: Place, mqadmin: Mqadmin) -> Answers:
    """Runs the scenario."""
    with EventLoopThread() as loop:
        stage = _Stage(place, mqadmin, loop)
        stage.broker_has_counted()
        stage.run(BEFORE_CLIENTS)
        try:
            stage.clients_come()
            stage.run(WITH_CLIENTS)
            bodies = loop.run(ask(place.namesrv_addr, place.broker_addr))
            stage.run(WHILE_THE_CONSUMER_WAITS)
            stage.consumer_leaves()
            stage.run(WITHOUT_CONSUMER)
        finally:
            stage.producer_leaves()
    return Answers(stage.outputs, bodies)


class _Stage:
    """The clients of the scenario, and the values for placeholders in commands."""

    def __init__(self, place: Place, mqadmin: Mqadmin, loop: EventLoopThread) -> None:
        self._mqadmin = mqadmin
        self._loop = loop
        self._producer = Producer(PRODUCERS, namesrv_addr=place.namesrv_addr)
        self._values = {"broker": place.broker_addr, "namesrv": place.namesrv_addr, "exports": str(mqadmin.exports)}
        self.outputs: dict[str, str] = {}

    def run(self, commands: Mapping[str, str]) -> None:
        """Runs the commands. Placeholders such as `{broker}` are replaced by the known values."""
        for name, command in commands.items():
            self.outputs[name] = self._mqadmin.run(*command.format_map(self._values).split())

    def broker_has_counted(self) -> None:
        """Waits until Apache's broker has sampled its rates. An earlier request for them fails with NoSuchElementException."""
        self._wait_for(r"(?s)\A(?!.*Exception).*DefaultCluster", "clusterList")

    def clients_come(self) -> None:
        """Starts a producer that sends to each queue in turn, and a consumer that consumes all messages."""
        self._loop.run(self._producer.start())
        began_s = time.monotonic()
        for number in range(MESSAGES):
            if number == MESSAGES // 2:
                self._values["middle_ms"] = str(time.time_ns() // 1_000_000 + 1)
                # A search by time finds the nearest message: that is one before the middle, however slow the first sends were.
                time.sleep(max(0.5, 3 * (time.monotonic() - began_s)))
            self._send(number)
        self._values["consumer"] = self._mqadmin.run("consume", GROUP, TOPIC, "even || odd")
        self._wait_for(f"%RETRY%{GROUP} (?s:.*)Diff Total: 0", "consumerProgress", "-g", GROUP)
        self._wait_for(f" {MESSAGES} +{MESSAGES}", "statsAll", "-t", TOPIC)

    def consumer_leaves(self) -> None:
        """Stops the consumer."""
        self._mqadmin.run("leave")

    def producer_leaves(self) -> None:
        """Stops the producer."""
        self._loop.run(self._producer.shutdown())

    def _wait_for(self, wanted: str, *command: str) -> str:
        """Repeats a command until its output matches the regular expression `wanted`, and returns the output."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(wanted, printed := self._mqadmin.run(*command)):
            assert time.monotonic() < deadline, f"{command} still prints\n{printed}"
            time.sleep(0.2)
        return printed

    def _send(self, number: int) -> None:
        message = Message.of(
            TOPIC,
            f"body {number}".encode(),
            tags="odd" if number % 2 else "even",
            keys=(f"key-{number}", "shared"),
            user_properties={"n": str(number)},
        )
        result = self._loop.run(self._producer.send(message, MessageQueue(TOPIC, BROKER, number % QUEUES)))
        self._values[f"offset_id_{number}"] = result.offset_message_id
        self._values[f"unique_id_{number}"] = result.message_id
        self._values["offset_id_none"] = f"{result.offset_message_id[:16]}{'0' * 12}FFFF"
