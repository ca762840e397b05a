package recipes;

import static org.apache.rocketmq.client.producer.LocalTransactionState.COMMIT_MESSAGE;
import static org.apache.rocketmq.client.producer.LocalTransactionState.ROLLBACK_MESSAGE;
import static org.apache.rocketmq.client.producer.LocalTransactionState.UNKNOW;

import java.sql.SQLException;
import java.util.UUID;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Three payments: the bank accepts one, refuses one, and answers late for one. Each customer who has paid gets one coupon. */
public final class PaymentCoupon {
    private static final String TOPIC = "payments-in-java";

    static Database payments() throws SQLException {
        return new Database("payments.db", "payments (id TEXT PRIMARY KEY, customer TEXT)");
    }

    static Database coupons() throws SQLException {
        return new Database("coupons.db", "coupons (payment_id TEXT PRIMARY KEY, customer TEXT)");
    }

    /** The bank's answer decides. An answer that comes later is in the database before the check-back asks for it. */
    static final class PaymentListener implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object answer) {
            LocalTransactionState state = (LocalTransactionState) answer;
            if (state == ROLLBACK_MESSAGE) {
                return state; // nothing to store
            }
            try (Database database = payments()) {
                database.begin(message.getTransactionId(), state);
                database.update("INSERT INTO payments VALUES (?, ?)", message.getKeys(), new String(message.getBody()));
                database.commit();
                return state;
            } catch (SQLException failure) {
                System.out.println("left to the check-back: " + failure);
                return UNKNOW;
            }
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            try (Database database = payments()) {
                LocalTransactionState state = database.settle(message.getTransactionId());
                System.out.println("check-back for " + Clients.text(message) + ": " + state);
                return state;
            } catch (SQLException failure) {
                return UNKNOW; // never ROLLBACK: the payment may exist
            }
        }
    }

    private static String pay(TransactionMQProducer producer, String customer, LocalTransactionState answer) throws Exception {
        Message message = new Message(TOPIC, null, UUID.randomUUID().toString(), Clients.bytes(customer));
        producer.sendMessageInTransaction(message, answer);
        System.out.println(customer + " pays: " + answer);
        return message.getTransactionId();
    }

    /** A coupon for a payment. The message may come twice; the second time there is a row already. */
    private static void giveCoupon(MessageExt message) throws SQLException {
        try (Database database = coupons()) {
            if (database.update("INSERT OR IGNORE INTO coupons VALUES (?, ?)", message.getKeys(), Clients.text(message)) == 1) {
                System.out.println("a coupon for " + Clients.text(message));
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        TransactionMQProducer producer = Clients.producer("payments-in-java", new PaymentListener());
        pay(producer, "ada", COMMIT_MESSAGE);
        pay(producer, "bob", ROLLBACK_MESSAGE);
        String late = pay(producer, "eve", UNKNOW);
        Clients.consume("coupons-in-java", TOPIC, PaymentCoupon::giveCoupon);
        try (Database database = payments()) {
            database.conclude(late, COMMIT_MESSAGE);
            System.out.println("eve has paid");
        }
    }
}
