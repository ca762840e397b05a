package recipes;

import static org.apache.rocketmq.client.producer.LocalTransactionState.COMMIT_MESSAGE;
import static org.apache.rocketmq.client.producer.LocalTransactionState.UNKNOW;

import java.sql.SQLException;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Places the orders that are named, of 25.99 each, and gives a point for each full unit. Runs until Ctrl-C.
 *
 * PAUSE_S is a pause between the local commit and COMMIT: time to kill the program.
 */
public final class OrderCredit {
    private static final String TOPIC = "orders-in-java";
    private static final long PAUSE_S = Long.parseLong(System.getenv().getOrDefault("PAUSE_S", "0"));

    static Database orders() throws SQLException {
        return new Database("orders.db", "orders (id TEXT PRIMARY KEY, cents INTEGER)");
    }

    static Database credits() throws SQLException {
        return new Database("credits.db", "credits (order_id TEXT PRIMARY KEY, points INTEGER)");
    }

    /** The order database decides each transaction. */
    static final class OrderListener implements TransactionListener {
        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object cents) {
            try (Database database = orders()) {
                database.begin(message.getTransactionId(), COMMIT_MESSAGE);
                database.update("INSERT INTO orders VALUES (?, ?)", message.getKeys(), cents);
                database.commit();
                System.out.println(message.getKeys() + " is stored");
                Thread.sleep(PAUSE_S * 1000);
                return COMMIT_MESSAGE;
            } catch (SQLException | InterruptedException failure) {
                System.out.println("left to the check-back: " + failure);
                return UNKNOW;
            }
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            try (Database database = orders()) {
                LocalTransactionState state = database.settle(message.getTransactionId());
                System.out.println("check-back for " + message.getKeys() + ": " + state);
                return state;
            } catch (SQLException failure) {
                return UNKNOW; // never ROLLBACK: the order may exist
            }
        }
    }

    /** The points of an order. The message may come twice; the second time there is a row already. */
    private static void credit(MessageExt message) throws SQLException {
        int points = Integer.parseInt(Clients.text(message)) / 100;
        try (Database database = credits()) {
            if (database.update("INSERT OR IGNORE INTO credits VALUES (?, ?)", message.getKeys(), points) == 1) {
                System.out.println(message.getKeys() + ": " + points + " points");
            }
        }
    }

    public static void main(String[] orders) throws Exception {
        TransactionMQProducer producer = Clients.producer("orders-in-java", new OrderListener());
        for (String order : orders) {
            producer.sendMessageInTransaction(new Message(TOPIC, null, order, Clients.bytes("2599")), 2599);
        }
        Clients.consume("credits-in-java", TOPIC, OrderCredit::credit);
    }
}
