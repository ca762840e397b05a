package conformance;

import java.util.List;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;

/** Namespaces and traces, which clients before 4.4 and 4.5 have not. */
final class NamespaceAndTraceCases {
    private static final long DELIVERY_MS = 10_000;
    private static final long QUIET_MS = 1000;

    private NamespaceAndTraceCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("namespace", NamespaceAndTraceCases::namespace),
            new Case("message-trace", NamespaceAndTraceCases::messageTrace));
    }

    /** The client puts its namespace before each topic and group, and takes it off again. */
    private static void namespace(Env env) throws Exception {
        String topic = env.freshName("topic");
        DefaultMQProducer producer = new DefaultMQProducer(env.freshName("group"), Account.HOOK);
        producer.setNamespace("tenant");
        env.start(producer);
        Env.createTopic(producer, topic, 4);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.setNamespace("tenant");
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            inbox.add(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Env.awaitQueues(consumer, "tenant%" + topic);

        producer.send(Text.message(topic, "for the tenant"));

        MessageExt received = inbox.awaitExactly(1, DELIVERY_MS, QUIET_MS).get(0);
        Check.equal("for the tenant", Text.of(received), "body");
        Check.equal(topic, received.getTopic(), "topic");
    }

    /** A producer that traces tells of each message in RMQ_SYS_TRACE_TOPIC. */
    private static void messageTrace(Env env) throws Exception {
        String topic = env.createTopic(4);
        long begin = System.currentTimeMillis() - 1000;
        DefaultMQProducer producer = env.start(new DefaultMQProducer(env.freshName("group"), Account.HOOK, true, null));

        SendResult sent = producer.send(Text.message(topic, "traced"));

        Check.eventually(30_000, "a trace of the message", () -> env.producer().queryMessage(
            "RMQ_SYS_TRACE_TOPIC", sent.getMsgId(), 8, begin, System.currentTimeMillis() + 1000).getMessageList().stream()
            .anyMatch(trace -> Text.of(trace).contains(sent.getMsgId())));
    }
}
