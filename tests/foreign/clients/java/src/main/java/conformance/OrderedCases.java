package conformance;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.MixAll;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Ordered consumption beyond a single consumer: locks that change hands, messages that fail. */
final class OrderedCases {
    private static final long DELIVERY_MS = 10_000;
    private static final long QUIET_MS = 1000;
    /** Apache's broker puts the message there only after delay level 4, 30 s. */
    private static final long DEAD_LETTER_MS = 45_000;

    private OrderedCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("ordered-takeover", 120, OrderedCases::takeover),
            new Case("ordered-suspend", OrderedCases::suspend),
            new Case("ordered-dlq", 120, OrderedCases::deadLetter));
    }

    /** Two consumers share the queues by the broker's locks; when one leaves, the other goes on where it was, in order. */
    private static void takeover(Env env) throws Exception {
        String topic = env.createTopic(4);
        String group = env.freshName("group");
        Steps steps = new Steps();
        DefaultMQPushConsumer first = orderly(env, group, topic, steps);
        sendSteps(env, topic, 0, 5);
        steps.inbox.awaitExactly(20, DELIVERY_MS, 0);
        awaitLocks(topic, first, 4);

        DefaultMQPushConsumer second = orderly(env, group, topic, steps);
        awaitLocks(topic, first, 2);
        awaitLocks(topic, second, 2);
        sendSteps(env, topic, 5, 10);
        steps.inbox.awaitExactly(40, DELIVERY_MS, QUIET_MS);

        env.shutDownCommitted(second, topic, 20);
        awaitLocks(topic, first, 4);
        sendSteps(env, topic, 10, 15);
        steps.inbox.awaitExactly(60, DELIVERY_MS, QUIET_MS);
        for (int order = 0; order < 4; order++) {
            Check.equal(Text.range("", 0, 15), steps.of("order-" + order), "steps of order " + order);
        }
    }

    /** A message that fails holds up those behind it, and comes again by itself. */
    private static void suspend(Env env) throws Exception {
        String topic = env.createTopic(1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            inbox.add(messages);
            context.setSuspendCurrentQueueTimeMillis(200);
            boolean fails = Text.of(messages.get(0)).equals("1") && messages.get(0).getReconsumeTimes() < 2;
            return fails ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Env.awaitQueues(consumer, topic);

        for (String body : Text.range("", 0, 3)) {
            env.producer().send(Text.message(topic, body));
        }

        Check.equal(List.of("0", "1", "1", "1", "2"), Text.inOrder(inbox.awaitExactly(5, DELIVERY_MS, QUIET_MS)), "bodies");
    }

    /** A message that fails too often goes to the dead letters, and those behind it come. */
    private static void deadLetter(Env env) throws Exception {
        String topic = env.createTopic(1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.setMaxReconsumeTimes(1);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            inbox.add(messages);
            context.setSuspendCurrentQueueTimeMillis(200);
            boolean fails = Text.of(messages.get(0)).equals("poison");
            return fails ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Env.awaitQueues(consumer, topic);

        env.producer().send(Text.message(topic, "tag", "poison"));
        env.producer().send(Text.message(topic, "tag", "next"));

        Check.equal(List.of("poison", "poison", "next"), Text.inOrder(inbox.awaitExactly(3, DELIVERY_MS, QUIET_MS)), "bodies");
        DefaultMQPullConsumer reader = env.pullConsumer();
        String deadLetters = MixAll.getDLQTopic(consumer.getConsumerGroup());
        Check.eventually(DEAD_LETTER_MS, "a dead letter", () -> !messagesOf(reader, deadLetters).isEmpty());
        List<MessageExt> dead = messagesOf(reader, deadLetters);
        Check.equal(List.of("poison"), Text.inOrder(dead), "dead letters");
        Check.equal("tag", dead.get(0).getTags(), "tags");
    }

    private static DefaultMQPushConsumer orderly(Env env, String group, String topic, Steps steps) throws Exception {
        DefaultMQPushConsumer consumer = env.pushConsumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            steps.add(messages);
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    /** The consumers look for locks now and then only: they are made to look now. */
    private static void awaitLocks(String topic, DefaultMQPushConsumer consumer, int queues) throws InterruptedException {
        Check.eventually(30_000, queues + " queues locked", () -> {
            consumer.getDefaultMQPushConsumerImpl().doRebalance();
            return Env.queuesLocked(consumer, topic) == queues;
        });
    }

    private static void sendSteps(Env env, String topic, int from, int to) throws Exception {
        for (String step : Text.range("", from, to)) {
            for (int order = 0; order < 4; order++) {
                Message message = Text.message(topic, step);
                message.setKeys("order-" + order);
                env.producer().send(message, (queues, m, id) -> queues.get((Integer) id), order);
            }
        }
    }

    @SuppressWarnings("deprecation")
    private static List<MessageExt> messagesOf(DefaultMQPullConsumer reader, String topic) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        for (MessageQueue queue : reader.fetchSubscribeMessageQueues(topic)) {
            var page = reader.pull(queue, "*", 0, 32);
            if (page.getPullStatus() == PullStatus.FOUND) {
                messages.addAll(page.getMsgFoundList());
            }
        }
        return messages;
    }

    /** The steps of each order, as they came to whichever consumer. */
    private static final class Steps {
        private final Inbox inbox = new Inbox();
        private final Map<String, List<String>> byOrder = new HashMap<>();

        synchronized void add(List<MessageExt> messages) {
            for (MessageExt message : messages) {
                byOrder.computeIfAbsent(message.getKeys(), key -> new ArrayList<>()).add(Text.of(message));
            }
            inbox.add(messages);
        }

        synchronized List<String> of(String order) {
            return new ArrayList<>(byOrder.getOrDefault(order, List.of()));
        }
    }
}
