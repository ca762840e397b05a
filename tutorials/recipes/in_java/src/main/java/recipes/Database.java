package recipes;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import org.apache.rocketmq.client.producer.LocalTransactionState;

/**
 * A service's SQLite file, with the barrier: a row for each transaction.
 *
 * The local transaction and the check-back both insert this row. Only one of them can. So an order cannot be stored after the
 * broker was told that it does not exist.
 */
final class Database implements AutoCloseable {
    private final Connection connection;

    /** Opens the file in the current folder, with the table of the barrier and one for the work. */
    Database(String file, String table) throws SQLException {
        connection = DriverManager.getConnection("jdbc:sqlite:" + file + "?busy_timeout=10000");
        update("CREATE TABLE IF NOT EXISTS transactions (id TEXT PRIMARY KEY, state TEXT NOT NULL)");
        update("CREATE TABLE IF NOT EXISTS " + table);
    }

    int update(String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = prepared(sql, values)) {
            return statement.executeUpdate();
        }
    }

    private PreparedStatement prepared(String sql, Object... values) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(sql);
        for (int i = 0; i < values.length; i++) {
            statement.setObject(i + 1, values[i]);
        }
        return statement;
    }

    /** Begins the local transaction with the row of the barrier. Throws if a check-back has already answered ROLLBACK. */
    void begin(String transactionId, LocalTransactionState state) throws SQLException {
        connection.setAutoCommit(false);
        update("INSERT INTO transactions VALUES (?, ?)", transactionId, state.name());
    }

    /** The local commit: the work and its outcome. */
    void commit() throws SQLException {
        connection.commit();
    }

    /** Changes the outcome of a transaction that was stored as UNKNOW. */
    void conclude(String transactionId, LocalTransactionState state) throws SQLException {
        update("UPDATE transactions SET state = ? WHERE id = ? AND state = 'UNKNOW'", state.name(), transactionId);
    }

    /** Answers a check-back. If nothing is stored, it stores ROLLBACK before it answers. */
    LocalTransactionState settle(String transactionId) throws SQLException {
        update("INSERT OR IGNORE INTO transactions VALUES (?, 'ROLLBACK_MESSAGE')", transactionId);
        try (PreparedStatement statement = prepared("SELECT state FROM transactions WHERE id = ?", transactionId);
                ResultSet row = statement.executeQuery()) {
            row.next();
            return LocalTransactionState.valueOf(row.getString(1));
        }
    }

    /** Closes the connection. What is not committed is rolled back. */
    @Override
    public void close() throws SQLException {
        connection.close();
    }
}
