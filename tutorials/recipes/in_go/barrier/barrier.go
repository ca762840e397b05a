// Package barrier keeps the outcome of each transaction in a row of the service's own SQLite file.
//
// The local transaction and the check-back both insert this row. Only one of them can. So an order cannot be stored after the
// broker was told that it does not exist.
package barrier

import (
	"database/sql"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	_ "modernc.org/sqlite"
)

// Open opens the file in the current folder, with the table of the barrier and one for the work.
func Open(file, table string) (*sql.DB, error) {
	database, err := sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return nil, err
	}
	database.SetMaxOpenConns(1)
	_, err = database.Exec(`CREATE TABLE IF NOT EXISTS transactions (id TEXT PRIMARY KEY, state INTEGER NOT NULL);
		CREATE TABLE IF NOT EXISTS ` + table)
	return database, err
}

// Store commits the work and its outcome together. It fails if a check-back has already answered ROLLBACK.
func Store(database *sql.DB, id string, state primitive.LocalTransactionState, work string, values ...any) error {
	local, err := database.Begin()
	if err != nil {
		return err
	}
	defer local.Rollback() // does nothing after a commit
	if _, err := local.Exec("INSERT INTO transactions VALUES (?, ?)", id, int(state)); err != nil {
		return err
	}
	if _, err := local.Exec(work, values...); err != nil {
		return err
	}
	return local.Commit()
}

// Conclude changes the outcome of a transaction that was stored as unknown.
func Conclude(database *sql.DB, id string, state primitive.LocalTransactionState) error {
	_, err := database.Exec("UPDATE transactions SET state = ? WHERE id = ? AND state = ?", int(state), id, int(primitive.UnknowState))
	return err
}

// Settle answers a check-back. If nothing is stored, it stores ROLLBACK before it answers.
func Settle(database *sql.DB, id string) (state primitive.LocalTransactionState, err error) {
	_, err = database.Exec("INSERT OR IGNORE INTO transactions VALUES (?, ?)", id, int(primitive.RollbackMessageState))
	if err == nil {
		err = database.QueryRow("SELECT state FROM transactions WHERE id = ?", id).Scan(&state)
	}
	if err != nil {
		return primitive.UnknowState, err // never ROLLBACK: the work may be stored
	}
	return state, nil
}
