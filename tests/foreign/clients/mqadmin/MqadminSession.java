import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * Runs mqadmin commands one after the other in one JVM. Each line of standard input is a command, its words separated by
 * tabs; each line of standard output is what the command printed, standard error included, in Base64.
 *
 * Two commands are not mqadmin's: "consume GROUP TOPIC EXPRESSION" starts a consumer, prints its client id, and "leave" stops it.
 */
@SuppressWarnings("deprecation")
public class MqadminSession {
    private static DefaultMQPushConsumer consumer;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            ByteArrayOutputStream printed = new ByteArrayOutputStream();
            PrintStream capture = new PrintStream(printed, true, StandardCharsets.UTF_8);
            System.setOut(capture);
            System.setErr(capture);
            run(line.split("\t"));
            capture.flush();
            answers.println(Base64.getEncoder().encodeToString(printed.toByteArray()));
            answers.flush();
        }
        System.exit(0);
    }

    private static void run(String[] words) throws Exception {
        if (words[0].equals("consume")) {
            consume(words[1], words[2], words[3]);
        } else if (words[0].equals("leave")) {
            consumer.shutdown();
        } else {
            MQAdminStartup.main(words);
        }
    }

    private static void consume(String group, String topic, String expression) throws Exception {
        consumer = new DefaultMQPushConsumer(group);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPersistConsumerOffsetInterval(500);
        consumer.setPollNameServerInterval(500);
        consumer.subscribe(topic, expression);
        consumer.registerMessageListener(
            (MessageListenerConcurrently) (messages, context) -> ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        consumer.start();
        System.out.print(consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().getClientId());
    }
}
