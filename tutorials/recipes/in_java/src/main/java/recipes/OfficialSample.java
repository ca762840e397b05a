package recipes;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** What Apache's sample does: ten half messages, each decided by a counter at its check-back. Do not copy it. */
public final class OfficialSample {
    private static final String TOPIC = "TopicTestInJava";
    private static final String[] TAGS = {"TagA", "TagB", "TagC", "TagD", "TagE"};

    /** Its decisions are in memory. After a restart it answers COMMIT to all. */
    static final class TransactionListenerImpl implements TransactionListener {
        private final AtomicInteger transactionIndex = new AtomicInteger();
        private final Map<String, Integer> localTrans = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
            localTrans.put(message.getTransactionId(), transactionIndex.getAndIncrement() % 3);
            return LocalTransactionState.UNKNOW;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            return switch (localTrans.getOrDefault(message.getTransactionId(), 1)) {
                case 0 -> LocalTransactionState.UNKNOW;
                case 2 -> LocalTransactionState.ROLLBACK_MESSAGE;
                default -> LocalTransactionState.COMMIT_MESSAGE;
            };
        }
    }

    public static void main(String[] arguments) throws Exception {
        TransactionMQProducer producer = Clients.producer("sample-in-java", new TransactionListenerImpl());
        for (int i = 0; i < 10; i++) {
            Message message = new Message(TOPIC, TAGS[i % TAGS.length], "KEY" + i, Clients.bytes("Hello RocketMQ " + i));
            System.out.println(message.getKeys() + ": " + producer.sendMessageInTransaction(message, null).getLocalTransactionState());
        }
        Clients.consume("sample-readers-in-java", TOPIC,
                message -> System.out.println("delivered: " + Clients.text(message) + " [" + message.getTags() + "]"));
    }
}
