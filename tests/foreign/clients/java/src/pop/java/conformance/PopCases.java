package conformance;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;

/** Consumers of RocketMQ 5 without a share of the queues: they pop. Only for a client of RocketMQ 5. */
final class PopCases {
    private static final long DELIVERY_MS = 60_000;
    private static final long QUIET_MS = 1000;

    private PopCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("pop-concurrently", PopCases::concurrently),
            new Case("pop-retry", PopCases::retry),
            new Case("pop-dlq", PopCases::deadLetter),
            new Case("pop-orderly", PopCases::orderly));
    }

    /** Two consumers of a group get each message once between them. */
    private static void concurrently(Env env) throws Exception {
        String topic = env.createTopic(4);
        String group = poppingGroup(env, topic, 16);
        Inbox inbox = new Inbox();
        for (int number = 0; number < 2; number++) {
            start(env, group, topic, (messages, context) -> {
                inbox.add(messages);
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
        }
        send(env, topic, 20);
        inbox.awaitExactly(20, DELIVERY_MS, QUIET_MS);
        Check.equal(new java.util.TreeSet<>(Text.range("", 0, 20)), Text.distinct(inbox.all()), "bodies");
    }

    /** A message that fails comes again, with its count of redeliveries. */
    private static void retry(Env env) throws Exception {
        String topic = env.createTopic(1);
        List<Integer> times = new CopyOnWriteArrayList<>();
        start(env, poppingGroup(env, topic, 16), topic, (messages, context) -> {
            messages.forEach(message -> times.add(message.getReconsumeTimes()));
            return times.size() < 2 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        send(env, topic, 1);
        Check.eventually(DELIVERY_MS, "the second delivery", () -> times.size() == 2);
        Thread.sleep(QUIET_MS);
        Check.equal(List.of(0, 1), times, "redeliveries");
    }

    /** After the group's last attempt it is a dead letter. */
    private static void deadLetter(Env env) throws Exception {
        String topic = env.createTopic(1);
        String group = poppingGroup(env, topic, 1);
        start(env, group, topic, (messages, context) -> ConsumeConcurrentlyStatus.RECONSUME_LATER);
        send(env, topic, 1);
        Check.eventually(DELIVERY_MS, "a dead letter", () ->
            env.producer().maxOffset(env.producer().fetchPublishMessageQueues("%DLQ%" + group).get(0)) == 1);
    }

    /** Messages of a queue come in order, and one that fails holds up those behind it. */
    private static void orderly(Env env) throws Exception {
        String topic = env.createTopic(1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = popping(env, poppingGroup(env, topic, 16), topic);
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            boolean fails = Text.of(messages.get(0)).equals("1") && !inbox.countByBody().containsKey("1");
            inbox.add(messages);
            context.setSuspendCurrentQueueTimeMillis(200);
            return fails ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        send(env, topic, 3);
        Check.equal(List.of("0", "1", "1", "2"), Text.inOrder(inbox.awaitExactly(4, DELIVERY_MS, QUIET_MS)), "bodies");
    }

    private static void start(Env env, String group, String topic, MessageListenerConcurrently listener) throws Exception {
        DefaultMQPushConsumer consumer = popping(env, group, topic);
        consumer.registerMessageListener(listener);
        consumer.start();
    }

    private static DefaultMQPushConsumer popping(Env env, String group, String topic) throws Exception {
        DefaultMQPushConsumer consumer = env.pushConsumer(group);
        consumer.setClientRebalance(false);
        consumer.subscribe(topic, "*");
        return consumer;
    }

    /** A group that an operator told to pop from the topic, and to give up after so many redeliveries. */
    private static String poppingGroup(Env env, String topic, int mostRedeliveries) throws Exception {
        String group = env.freshName("group");
        MQClientInstance client = env.producer().getDefaultMQProducerImpl().getMqClientFactory();
        client.updateTopicRouteInfoFromNameServer(topic);
        String broker = client.findBrokerAddrByTopic(topic);
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        config.setRetryMaxTimes(mostRedeliveries);
        client.getMQClientAPIImpl().createSubscriptionGroup(broker, config, 30_000);
        client.getMQClientAPIImpl().setMessageRequestMode(broker, topic, group, MessageRequestMode.POP, 0, 30_000);
        return group;
    }

    private static void send(Env env, String topic, int count) throws Exception {
        DefaultMQProducer producer = env.producer();
        for (String body : Text.range("", 0, count)) {
            producer.send(Text.message(topic, body));
        }
    }
}
