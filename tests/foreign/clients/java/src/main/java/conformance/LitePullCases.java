package conformance;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** The lite pull consumer, which clients before 4.6 have not. */
final class LitePullCases {
    private static final long DELIVERY_MS = 10_000;

    private LitePullCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("lite-pull", LitePullCases::litePull),
            new Case("lite-pull-subscribe", LitePullCases::litePullSubscribe));
    }

    private static void litePull(Env env) throws Exception {
        String topic = env.createTopic(2);
        MessageQueue queue = queue(env, topic, 1);
        for (String body : Text.range("message ", 0, 20)) {
            env.producer().send(Text.message(topic, body), queue);
        }
        String group = env.freshName("group");
        DefaultLitePullConsumer consumer = consumer(env, group);
        consumer.setAutoCommit(false);
        consumer.start();
        Check.equal(2, consumer.fetchMessageQueues(topic).size(), "queues");
        consumer.assign(List.of(queue));
        // The client loses a seek that meets its first pull under way: that pull's messages come all the same.
        Check.equal(Text.range("message ", 0, 20), Text.inOrder(pollAll(consumer, 20)), "bodies from where a new group begins");
        consumer.seek(queue, 15);

        List<MessageExt> polled = pollAll(consumer, 5);
        Check.equal(Text.range("message ", 15, 20), Text.inOrder(polled), "bodies from offset 15");
        Check.equal(List.of(15L, 16L, 17L, 18L, 19L), polled.stream().map(MessageExt::getQueueOffset).toList(), "queue offsets");
        commit(env, consumer, topic, List.of(queue), 20);

        consumer.seekToBegin(queue);
        Check.equal(Text.range("message ", 0, 20), Text.inOrder(pollAll(consumer, 20)), "bodies from the beginning");
        consumer.shutdown();

        DefaultLitePullConsumer successor = consumer(env, group);
        successor.start();
        successor.assign(List.of(queue));
        env.producer().send(Text.message(topic, "message 20"), queue);
        Check.equal(List.of("message 20"), Text.inOrder(pollAll(successor, 1)), "bodies from the committed offset");
    }

    /** The group's members share the queues by themselves, and commit by themselves. */
    private static void litePullSubscribe(Env env) throws Exception {
        String topic = env.createTopic(2);
        ConsumeCases.send(env, topic, Text.range("message ", 0, 10));
        String group = env.freshName("group");
        DefaultLitePullConsumer consumer = consumer(env, group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.start();
        Check.equal(new TreeSet<>(Text.range("message ", 0, 10)), Text.distinct(pollAll(consumer, 10)), "bodies");
        commit(env, consumer, topic, consumer.fetchMessageQueues(topic), 10);
        consumer.shutdown();
        ConsumeCases.send(env, topic, Text.range("message ", 10, 20));

        DefaultLitePullConsumer successor = consumer(env, group);
        successor.subscribe(topic, "*");
        successor.start();

        Check.equal(new TreeSet<>(Text.range("message ", 10, 20)), Text.distinct(pollAll(successor, 10)), "bodies from the committed offsets");
    }

    /** Not started yet. */
    static DefaultLitePullConsumer consumer(Env env, String group) {
        DefaultLitePullConsumer fresh = env.configure(new DefaultLitePullConsumer(group, Account.HOOK));
        env.onClose(fresh::shutdown);
        return fresh;
    }

    /** Commits until the broker has offsets that add up to n; see Env.shutDownCommitted. */
    private static void commit(Env env, DefaultLitePullConsumer consumer, String topic, Collection<MessageQueue> queues, int n)
        throws Exception {
        Check.eventually(DELIVERY_MS, "committed offsets that add up to " + n, () -> {
            consumer.commitSync();
            consumer.getOffsetStore().persistAll(new HashSet<>(queues));
            return env.committed(consumer.getConsumerGroup(), topic, queues) == n;
        });
    }

    private static List<MessageExt> pollAll(DefaultLitePullConsumer consumer, int n) {
        List<MessageExt> polled = new ArrayList<>();
        long deadline = System.nanoTime() + DELIVERY_MS * 1_000_000;
        while (polled.size() < n && System.nanoTime() < deadline) {
            polled.addAll(consumer.poll(500));
        }
        return polled;
    }

    private static MessageQueue queue(Env env, String topic, int id) throws Exception {
        return env.producer().fetchPublishMessageQueues(topic).stream().filter(q -> q.getQueueId() == id).findFirst().orElseThrow();
    }
}
