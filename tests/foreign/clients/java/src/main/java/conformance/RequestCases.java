package conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.exception.RequestTimeoutException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.protocol.ResponseCode;

/** Request and reply: a producer sends a message and waits for what its consumer answers. */
final class RequestCases {
    private static final long REPLY_MS = 10_000;
    private static final long DELIVERY_MS = 10_000;

    private RequestCases() {
    }

    static List<Case> all() {
        return List.of(
            new Case("request-reply", RequestCases::reply),
            new Case("request-callback", RequestCases::callback),
            new Case("request-timeout", RequestCases::timeout),
            new Case("reply-after-requester-left", RequestCases::requesterLeft));
    }

    private static void reply(Env env) throws Exception {
        String topic = env.createTopic(1);
        CompletableFuture<SendResult> replied = answerEach(env, topic, "reply to ");

        Message reply = env.newProducer().request(Text.message(topic, "a question"), REPLY_MS);

        Check.equal("reply to a question", Text.of(reply), "body of the reply");
        Check.that(reply.getTopic().endsWith("_REPLY_TOPIC"), "topic of the reply: %s", reply.getTopic());
        Check.equal("green", reply.getUserProperty("colour"), "user property of the reply");
        Check.that(reply.getProperty(MessageConst.PROPERTY_PUSH_REPLY_TIME) != null, "the reply tells when it was pushed");
        Check.equal(SendStatus.SEND_OK, replied.get(DELIVERY_MS, TimeUnit.MILLISECONDS).getSendStatus(), "send status of the reply");
    }

    /** The reply is so long that the client compresses it. */
    private static void callback(Env env) throws Exception {
        String topic = env.createTopic(1);
        String prefix = "so long ".repeat(10_000);
        answerEach(env, topic, prefix);
        CompletableFuture<Message> reply = new CompletableFuture<>();

        env.newProducer().request(Text.message(topic, "a question"), new RequestCallback() {
            @Override
            public void onSuccess(Message message) {
                if (message != null) { // the client calls this with null, too, once the request is sent
                    reply.complete(message);
                }
            }

            @Override
            public void onException(Throwable e) {
                reply.completeExceptionally(e);
            }
        }, REPLY_MS);

        Message received = reply.get(REPLY_MS, TimeUnit.MILLISECONDS);
        Check.that(Text.of(received).equals(prefix + "a question"), "the reply of %d bytes differs", received.getBody().length);
    }

    private static void timeout(Env env) throws Exception {
        String topic = env.createTopic(1);
        DefaultMQProducer requester = env.newProducer();
        Env.introduce(requester, topic); // else it would have to find and reach the broker in the time of the request
        long start = System.currentTimeMillis();

        Check.thrown(RequestTimeoutException.class, "a request that nobody answers",
            () -> requester.request(Text.message(topic, "anybody?"), 1500));

        Check.between(1400, 30_000, System.currentTimeMillis() - start, "ms until the request was given up");
        MessageExt asked = env.consume(topic).awaitExactly(1, DELIVERY_MS, 0).get(0);
        Check.equal("anybody?", Text.of(asked), "body of the request");
        Check.equal("1500", asked.getProperty(MessageConst.PROPERTY_MESSAGE_TTL), "property TTL");
        SendResult late = env.producer().send(MessageUtil.createReplyMessage(asked, "too late".getBytes(UTF_8)));
        Check.equal(SendStatus.SEND_OK, late.getSendStatus(), "send status of a reply that nobody waits for any longer");
    }

    private static void requesterLeft(Env env) throws Exception {
        String topic = env.createTopic(1);
        DefaultMQProducer requester = env.newProducer();
        Env.introduce(requester, topic);
        Check.thrown(RequestTimeoutException.class, "a request that nobody answers",
            () -> requester.request(Text.message(topic, "anybody?"), 1000));
        requester.shutdown();
        MessageExt asked = env.consume(topic).awaitExactly(1, DELIVERY_MS, 0).get(0);
        Message reply = MessageUtil.createReplyMessage(asked, "nobody hears it".getBytes(UTF_8));

        MQClientException refused = Check.thrown(MQClientException.class, "a reply to a requester that left",
            () -> env.producer().send(reply));

        Check.equal(ResponseCode.SYSTEM_ERROR, refused.getResponseCode(), "code of the refusal");
    }

    /** Replies to each message of the topic with the prefix and the message's body; the future gets the first reply's send result. */
    private static CompletableFuture<SendResult> answerEach(Env env, String topic, String prefix) throws Exception {
        DefaultMQProducer replier = env.newProducer();
        CompletableFuture<SendResult> replied = new CompletableFuture<>();
        DefaultMQPushConsumer consumer = env.pushConsumer(env.freshName("group"));
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    Message reply = MessageUtil.createReplyMessage(message, (prefix + Text.of(message)).getBytes(UTF_8));
                    reply.putUserProperty("colour", "green");
                    replied.complete(replier.send(reply));
                } catch (Exception e) {
                    replied.completeExceptionally(e);
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Env.awaitQueues(consumer, topic);
        return replied;
    }
}
