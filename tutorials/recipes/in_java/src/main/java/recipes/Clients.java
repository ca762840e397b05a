package recipes;

import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** Apache's producer and consumer, started. The name server's address is NAMESRV_ADDR, or 127.0.0.1:9876. */
final class Clients {
    private static final String NAMESRV_ADDR = System.getenv().getOrDefault("NAMESRV_ADDR", "127.0.0.1:9876");

    /** What a consumer does with a message. If it throws, the broker delivers the message again later. */
    interface Handler {
        void handle(MessageExt message) throws Exception;
    }

    static TransactionMQProducer producer(String group, TransactionListener listener) throws MQClientException {
        // The client's threads would keep the program alive after its main method has failed.
        Thread.currentThread().setUncaughtExceptionHandler((main, failure) -> {
            failure.printStackTrace();
            System.exit(1);
        });
        TransactionMQProducer producer = new TransactionMQProducer(group);
        producer.setNamesrvAddr(NAMESRV_ADDR);
        producer.setSendMsgTimeout(10_000);
        producer.setTransactionListener(listener);
        producer.start();
        return producer;
    }

    static void consume(String group, String topic, Handler handler) throws MQClientException {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(NAMESRV_ADDR);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            try {
                for (MessageExt message : messages) {
                    handler.handle(message);
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            } catch (Exception failure) {
                System.out.println("delivered again later: " + failure);
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
        });
        consumer.start();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(MessageExt message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }
}
