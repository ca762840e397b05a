package conformance;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.common.protocol.ResponseCode;

/** Subscriptions by SQL92 expressions. All but the first case need a broker with enablePropertyFilter=true. */
final class FilterCases {
    private static final long DELIVERY_MS = 30_000;
    private static final long QUIET_MS = 1000;

    private FilterCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("sql-filter-refused", FilterCases::refused),
            new Case("sql-filter", FilterCases::filter),
            new Case("sql-filter-conversions", FilterCases::conversions),
            new Case("sql-filter-redelivery", FilterCases::redelivery),
            new Case("sql-filter-pull", FilterCases::pull),
            new Case("sql-filter-lite-pull", FilterCases::litePull),
            new Case("sql-filter-illegal", FilterCases::illegal));
    }

    /** Unless the broker is told to filter by SQL, it says at once that it does not. */
    private static void refused(Env env) throws Exception {
        DefaultMQPushConsumer consumer = bySql(env, env.createTopic(1), "colour = 'green'", new Inbox());

        MQClientException refused = Check.thrown(MQClientException.class, "a consumer that filters by SQL", consumer::start);

        Check.that(refused.getErrorMessage().contains("does not support consumer to filter message by SQL92"), "reason: %s", refused.getErrorMessage());
    }

    private static void filter(Env env) throws Exception {
        String topic = env.createTopic(4);
        Inbox inbox = consume(env, topic, "(colour = 'green' AND size BETWEEN 2 AND 4) OR TAGS IN ('urgent', 'express') OR note IS NULL");
        Inbox all = env.consume(topic);

        send(env, topic, "no", Map.of("colour", "green", "size", "1", "note", "-"));
        send(env, topic, "green 2", Map.of("colour", "green", "size", "2", "note", "-"));
        send(env, topic, "green 4", Map.of("colour", "green", "size", "4", "note", "-"));
        send(env, topic, "no", Map.of("colour", "red", "size", "3", "note", "-"));
        send(env, topic, "no note", Map.of("colour", "red", "size", "3"));
        Message urgent = Text.message(topic, "urgent", "urgent");
        urgent.putUserProperty("note", "-");
        env.producer().send(urgent);

        all.awaitExactly(6, DELIVERY_MS, QUIET_MS);
        Check.equal(Set.of("green 2", "green 4", "no note", "urgent"), Text.distinct(inbox.awaitExactly(4, DELIVERY_MS, 0)), "bodies");
    }

    /** A number in the expression decides how the property is read; what cannot be read so is not delivered. */
    @SuppressWarnings("deprecation")
    private static void conversions(Env env) throws Exception {
        String topic = env.createTopic(1);
        for (String n : List.of("2", "3", "3.0", "three", "3000000000")) {
            send(env, topic, n, Map.of("n", n, "m", "2.5"));
        }
        send(env, topic, "missing", Map.of("m", "1"));
        DefaultMQPullConsumer consumer = env.pullConsumer();
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        awaitVersion(consumer, queue);

        Map<String, List<String>> expected = Map.of(
            "n > 2", List.of("3"),
            "n > 2.5", List.of("3", "3.0", "3000000000"),
            "n = '3'", List.of("3"),
            "n <> 3", List.of("2"),
            "NOT (n = 3)", List.of("2"),
            "n > m", List.of("3", "3.0", "3000000000"),
            "n IS NULL", List.of("missing"));
        for (Map.Entry<String, List<String>> entry : expected.entrySet()) {
            PullResult found = consumer.pull(queue, MessageSelector.bySql(entry.getKey()), 0, 32);
            Check.equal(entry.getValue(), Text.inOrder(found.getMsgFoundList()), "bodies for " + entry.getKey());
        }
    }

    private static void redelivery(Env env) throws Exception {
        String topic = env.createTopic(1);
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.subscribe(topic, MessageSelector.bySql("n > 1"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            inbox.add(messages);
            context.setDelayLevelWhenNextConsume(1);
            return messages.get(0).getReconsumeTimes() == 0 ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Env.awaitQueues(consumer, topic);
        Env.noticeRetryTopic(consumer);

        send(env, topic, "1", Map.of("n", "1"));
        send(env, topic, "2", Map.of("n", "2"));

        Check.equal(List.of("2", "2"), Text.inOrder(inbox.awaitExactly(2, DELIVERY_MS, QUIET_MS)), "bodies");
    }

    @SuppressWarnings("deprecation")
    private static void pull(Env env) throws Exception {
        String topic = env.createTopic(1);
        DefaultMQPullConsumer consumer = env.pullConsumer();
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(topic).iterator().next();
        for (int n = 0; n < 10; n++) {
            send(env, topic, String.valueOf(n), Map.of("n", String.valueOf(n)));
        }

        awaitVersion(consumer, queue);
        PullResult found = consumer.pull(queue, MessageSelector.bySql("n >= 4"), 0, 3);
        PullResult none = consumer.pull(queue, MessageSelector.bySql("n > 9"), 0, 32);

        Check.equal(PullStatus.FOUND, found.getPullStatus(), "pull status");
        Check.equal(List.of("4", "5", "6"), Text.inOrder(found.getMsgFoundList()), "bodies");
        Check.equal(7L, found.getNextBeginOffset(), "offset to go on from");
        Check.equal(PullStatus.NO_MATCHED_MSG, none.getPullStatus(), "pull status of what nothing matches");
        Check.equal(10L, none.getNextBeginOffset(), "offset to go on from where nothing matches");
    }

    private static void litePull(Env env) throws Exception {
        String topic = env.createTopic(2);
        for (int n = 0; n < 10; n++) {
            send(env, topic, String.valueOf(n), Map.of("n", String.valueOf(n)));
        }
        DefaultLitePullConsumer consumer = LitePullCases.consumer(env, env.freshName("group"));
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, MessageSelector.bySql("n < 3"));
        consumer.start();
        Inbox inbox = new Inbox();

        Check.eventually(DELIVERY_MS, "three messages", () -> {
            inbox.add(consumer.poll(500));
            return inbox.size() >= 3;
        });
        Check.equal(Set.of("0", "1", "2"), Text.distinct(inbox.all()), "bodies");
    }

    private static void illegal(Env env) throws Exception {
        String topic = env.createTopic(1);
        for (String expression : List.of("n >", "n > 'text'", "n = NULL", "n BETWEEN 5 AND 1", "n != 3")) {
            DefaultMQPushConsumer consumer = bySql(env, topic, expression, new Inbox());
            MQClientException refused = Check.thrown(MQClientException.class, "a consumer that filters by " + expression, consumer::start);
            Check.equal(ResponseCode.SUBSCRIPTION_PARSE_FAILED, refused.getResponseCode(), "response code for " + expression);
        }
    }

    /** Before its first heartbeat the client does not know the broker's version, and takes it for too old. */
    @SuppressWarnings("deprecation")
    private static void awaitVersion(DefaultMQPullConsumer consumer, MessageQueue queue) throws InterruptedException {
        Check.eventually(DELIVERY_MS, "a pull by SQL", () -> consumer.pull(queue, MessageSelector.bySql("TRUE"), 0, 1) != null);
    }

    private static Inbox consume(Env env, String topic, String expression) throws Exception {
        Inbox inbox = new Inbox();
        DefaultMQPushConsumer consumer = bySql(env, topic, expression, inbox);
        consumer.start();
        Env.awaitQueues(consumer, topic);
        return inbox;
    }

    private static DefaultMQPushConsumer bySql(Env env, String topic, String expression, Inbox inbox) throws Exception {
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.subscribe(topic, MessageSelector.bySql(expression));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            inbox.add(messages);
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    private static void send(Env env, String topic, String body, Map<String, String> properties) throws Exception {
        Message message = Text.message(topic, body);
        properties.forEach(message::putUserProperty);
        env.producer().send(message);
    }
}
