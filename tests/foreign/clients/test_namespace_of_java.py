"""Apache's Java client and the Python client share a namespace: each receives the other's messages and transactions."""

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from demo.ports import free_ports
from demo.processes import Processes
from demo.system import add_broker
from rocketmq_broker.client import (
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    LocalTransactionState,
    Message,
    MessageExt,
    PushConsumer,
    TransactionProducer,
    local_transaction,
)

pytestmark = [pytest.mark.e2e, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(600)]
FROM_FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
LAUNCH = Path(__file__).parent / "java" / "launch"
PROGRAM = """
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

public class Tenant {
    public static void main(String[] args) throws Exception {
        CountDownLatch left = new CountDownLatch(2);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("java-consumers");
        consumer.setNamespace("tenant");
        consumer.setNamesrvAddr(args[0]);
        consumer.subscribe("to-java", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                System.out.println("got " + message.getTopic() + " " + new String(message.getBody()));
                left.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        TransactionMQProducer producer = new TransactionMQProducer("java-producers");
        producer.setNamespace("tenant");
        producer.setNamesrvAddr(args[0]);
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return LocalTransactionState.UNKNOW;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                System.out.println("asked " + message.getTopic());
                left.countDown();
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        producer.sendMessageInTransaction(new Message("to-python", "from Java".getBytes()), null);
        boolean isDone = left.await(60, TimeUnit.SECONDS);
        producer.shutdown();
        System.exit(isDone ? 0 : 1);
    }
}
"""


@local_transaction
def never_says(message: Message, arg: object) -> LocalTransactionState:
    return LocalTransactionState.UNKNOWN


async def test_each_client_gets_the_transactions_of_the_other(tmp_path: Path) -> None:
    namesrv_port, port = free_ports(2)
    namesrv = f"127.0.0.1:{namesrv_port}"
    ports = {"listenPort": str(port), "namesrvListenPort": str(namesrv_port)}
    (tmp_path / "Tenant.java").write_text(PROGRAM)
    asked: list[str] = []
    got: list[tuple[str, str]] = []
    arrived = asyncio.Event()

    @never_says.answers_check_backs
    async def says(message: MessageExt) -> LocalTransactionState:
        asked.append(message.topic)
        return LocalTransactionState.COMMIT_MESSAGE

    async def consume(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        got.extend((message.topic, message.text) for message in messages)
        arrived.set()
        return ConsumeStatus.CONSUME_SUCCESS

    with Processes(tmp_path / "logs") as processes:
        add_broker(processes, tmp_path, {"transactionTimeOut": "1000", "transactionCheckInterval": "2000", **ports}).start()
        producer = TransactionProducer("python-producers", never_says, namesrv_addr=namesrv, namespace="tenant")
        consumer = PushConsumer("python-consumers", namesrv_addr=namesrv, namespace="tenant", consume_from_where=FROM_FIRST)
        consumer.register_message_listener(consume)
        consumer.subscribe("to-python")
        async with producer, consumer:
            for topic in ("to-java", "to-python"):
                await producer.create_topic(topic, 1)
            await producer.send_message_in_transaction(Message.of("to-java", "from Python"))
            running = await asyncio.create_subprocess_exec(
                LAUNCH, tmp_path / "Tenant.java", namesrv, stdout=PIPE, stderr=PIPE, cwd=tmp_path
            )
            output, errors = await running.communicate()
            assert running.returncode == 0, (output, errors, processes.logs()["broker"])
            await asyncio.wait_for(arrived.wait(), 60)
    assert {line for line in output.decode().splitlines() if line.startswith(("got", "asked"))} == {
        "got to-java from Python",
        "asked to-python",
    }
    assert (asked[0], got[0]) == ("to-java", ("to-python", "from Java"))
