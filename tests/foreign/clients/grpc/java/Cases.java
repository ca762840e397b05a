import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientException;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** Apache's Java client of RocketMQ 5, unchanged: each case prints a line, its name and `ok`, or what went wrong. */
public final class Cases {
    private static final Duration WITHIN = Duration.ofSeconds(120);
    /** Of a request; a client that sends again after less may send twice. */
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final Duration INVISIBLE = Duration.ofSeconds(30);
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    private final ClientConfiguration configuration;

    private Cases(String endpoint) {
        configuration = ClientConfiguration.newBuilder().setEndpoints(endpoint).enableSsl(false).setRequestTimeout(PATIENCE).build();
    }

    interface Case {
        void run(String topic) throws Exception;
    }

    /** Cases HOST:PORT PREFIX [CASE...]: these cases, or all, at once, each with a topic that begins with the prefix. */
    public static void main(String[] arguments) throws Exception {
        ExecutorService threads = Executors.newCachedThreadPool();
        Map<String, Future<?>> running = new LinkedHashMap<>();
        Map<String, Case> cases = new Cases(arguments[0]).all();
        if (arguments.length > 2) {
            cases.keySet().retainAll(List.of(arguments).subList(2, arguments.length));
        }
        cases.forEach((name, one) -> running.put(name, threads.submit(() -> {
            one.run(arguments[1] + name);
            return null;
        })));
        for (Map.Entry<String, Future<?>> one : running.entrySet()) {
            try {
                one.getValue().get();
                System.out.println(one.getKey() + " ok");
            } catch (ExecutionException failed) {
                failed.getCause().printStackTrace();
                System.out.println(one.getKey() + " " + failed.getCause());
            }
        }
        System.exit(0);
    }

    private Map<String, Case> all() {
        Map<String, Case> cases = new LinkedHashMap<>();
        cases.put("plain-message", this::plainMessage);
        cases.put("fifo-messages", this::fifoMessages);
        cases.put("delayed-message", this::delayedMessage);
        cases.put("tag-filter", this::tagFilter);
        cases.put("sql-filter", this::sqlFilter);
        cases.put("invisible-time-changed", this::invisibleTimeChanged);
        cases.put("transaction-committed", this::transactionCommitted);
        cases.put("transaction-rolled-back", this::transactionRolledBack);
        cases.put("lost-decision-checked-back", this::lostDecisionCheckedBack);
        cases.put("push-consumer-with-a-retry", this::pushConsumerWithARetry);
        cases.put("push-consumer-to-dead-letters", this::pushConsumerToDeadLetters);
        cases.put("fifo-push-consumer-to-dead-letters", this::fifoPushConsumerToDeadLetters);
        return cases;
    }

    private void plainMessage(String topic) throws Exception {
        send(topic, message(topic, "hello").setTag("red").setKeys("a").addProperty("x", "y").build());
        try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
            MessageView got = received(consumer, 1, INVISIBLE).get(0);
            equal(List.of("hello", "red", "[a]", "y"),
                List.of(body(got), got.getTag().get(), got.getKeys().toString(), got.getProperties().get("x")));
            consumer.ack(got);
            equal(List.of(), consumer.receive(16, INVISIBLE));
        }
    }

    private void fifoMessages(String topic) throws Exception {
        List<Message> messages = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            messages.add(message(topic, String.valueOf(number)).setMessageGroup("g").build());
        }
        send(topic, messages.toArray(Message[]::new));
        try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
            equal(List.of("0", "1", "2", "3", "4"), bodies(received(consumer, 5, INVISIBLE)));
        }
    }

    private void delayedMessage(String topic) throws Exception {
        long dueMs = System.currentTimeMillis() + 2000;
        send(topic, message(topic, "later").setDeliveryTimestamp(dueMs).build());
        try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
            equal(List.of("later"), bodies(received(consumer, 1, INVISIBLE)));
            that(System.currentTimeMillis() >= dueMs, "it came too early");
        }
    }

    private void tagFilter(String topic) throws Exception {
        send(topic, message(topic, "red").setTag("red").build(), message(topic, "blue").setTag("blue").build());
        try (SimpleConsumer consumer = simple(topic, new FilterExpression("blue"))) {
            equal(List.of("blue"), bodies(received(consumer, 1, INVISIBLE)));
        }
    }

    private void sqlFilter(String topic) throws Exception {
        send(topic, message(topic, "little").addProperty("price", "5").build(), message(topic, "much").addProperty("price", "50").build());
        try (SimpleConsumer consumer = simple(topic, new FilterExpression("price > 10", FilterExpressionType.SQL92))) {
            equal(List.of("much"), bodies(received(consumer, 1, INVISIBLE)));
        }
    }

    private void invisibleTimeChanged(String topic) throws Exception {
        send(topic, message(topic, "again").build());
        try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
            consumer.changeInvisibleDuration(received(consumer, 1, Duration.ofMinutes(5)).get(0), Duration.ofSeconds(2));
            MessageView second = received(consumer, 1, INVISIBLE).get(0);
            equal(2, second.getDeliveryAttempt());
            consumer.ack(second);
        }
    }

    private void transactionCommitted(String topic) throws Exception {
        try (Producer producer = producer(topic, TransactionResolution.COMMIT, new CountDownLatch(1))) {
            Transaction transaction = producer.beginTransaction();
            producer.send(message(topic, "tx").build(), transaction);
            transaction.commit();
            try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
                equal(List.of("tx"), bodies(received(consumer, 1, INVISIBLE)));
            }
        }
    }

    private void transactionRolledBack(String topic) throws Exception {
        try (Producer producer = producer(topic, TransactionResolution.ROLLBACK, new CountDownLatch(1))) {
            Transaction transaction = producer.beginTransaction();
            producer.send(message(topic, "tx").build(), transaction);
            transaction.rollback();
        }
        send(topic, message(topic, "after").build());
        try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
            equal(List.of("after"), bodies(received(consumer, 1, INVISIBLE)));
        }
    }

    private void lostDecisionCheckedBack(String topic) throws Exception {
        CountDownLatch asked = new CountDownLatch(1);
        try (Producer producer = producer(topic, TransactionResolution.COMMIT, asked)) {
            producer.send(message(topic, "tx").build(), producer.beginTransaction());
            that(asked.await(WITHIN.toSeconds(), TimeUnit.SECONDS), "no check-back");
            try (SimpleConsumer consumer = simple(topic, FilterExpression.SUB_ALL)) {
                equal(List.of("tx"), bodies(received(consumer, 1, INVISIBLE)));
            }
        }
    }

    private void pushConsumerWithARetry(String topic) throws Exception {
        equal(List.of(1, 2), attempts(topic, 1, message(topic, "hello").build()));
    }

    private void pushConsumerToDeadLetters(String topic) throws Exception {
        equal(List.of(1, 2), attempts(topic, 2, message(topic, "hello").build()));
    }

    private void fifoPushConsumerToDeadLetters(String topic) throws Exception {
        equal(List.of(1, 2), attempts(topic, 2, message(topic, "hello").setMessageGroup("g").build()));
    }

    /** The attempts of one message in a push consumer that fails so often. After two failures it has to be a dead letter. */
    private List<Integer> attempts(String topic, int failures, Message message) throws Exception {
        List<Integer> attempts = new CopyOnWriteArrayList<>();
        CountDownLatch delivered = new CountDownLatch(2);
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("group-" + topic)
            .setSubscriptionExpressions(Map.of(topic, FilterExpression.SUB_ALL))
            .setMessageListener(view -> {
                attempts.add(view.getDeliveryAttempt());
                delivered.countDown();
                return attempts.size() > failures ? ConsumeResult.SUCCESS : ConsumeResult.FAILURE;
            })
            .build();
        try (consumer) {
            send(topic, message);
            that(delivered.await(WITHIN.toSeconds(), TimeUnit.SECONDS), "delivered only " + attempts);
            if (failures == 2) {
                assertDeadLetter(topic);
            }
        }
        return attempts;
    }

    private void assertDeadLetter(String topic) throws Exception {
        try (SimpleConsumer consumer = simple("%DLQ%group-" + topic, FilterExpression.SUB_ALL)) {
            equal(List.of("hello"), bodies(received(consumer, 1, Duration.ofSeconds(10))));
        }
    }

    private MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes(UTF_8));
    }

    private void send(String topic, Message... messages) throws Exception {
        try (Producer producer = PROVIDER.newProducerBuilder().setClientConfiguration(configuration).setTopics(topic).build()) {
            for (Message message : messages) {
                that(!producer.send(message).getMessageId().toString().isEmpty(), "no message id");
            }
        }
    }

    private Producer producer(String topic, TransactionResolution answer, CountDownLatch asked) throws ClientException {
        return PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration)
            .setTopics(topic)
            .setTransactionChecker(view -> {
                asked.countDown();
                return answer;
            })
            .build();
    }

    private SimpleConsumer simple(String topic, FilterExpression expression) throws ClientException {
        return PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration)
            .setConsumerGroup("group-" + topic.replace("%DLQ%group", "dead"))
            .setAwaitDuration(Duration.ofSeconds(2))
            .setSubscriptionExpressions(Map.of(topic, expression))
            .build();
    }

    /** So many messages; fewer when the time is up. */
    private static List<MessageView> received(SimpleConsumer consumer, int count, Duration invisible) throws ClientException {
        long until = System.nanoTime() + WITHIN.toNanos();
        List<MessageView> found = new ArrayList<>();
        while (found.size() < count && System.nanoTime() < until) {
            found.addAll(consumer.receive(16, invisible));
        }
        that(!found.isEmpty(), "nothing was received");
        return found;
    }

    private static List<String> bodies(List<MessageView> messages) {
        return messages.stream().map(Cases::body).collect(Collectors.toList());
    }

    private static String body(MessageView message) {
        return UTF_8.decode(message.getBody()).toString();
    }

    private static void equal(Object expected, Object actual) {
        that(expected.equals(actual), "expected " + expected + ", got " + actual);
    }

    private static void that(boolean holds, String message) {
        if (!holds) {
            throw new AssertionError(message);
        }
    }
}
