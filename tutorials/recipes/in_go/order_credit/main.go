// Places the orders that are named, of 25.99 each, and gives a point for each full unit. Runs until Ctrl-C.
//
// PAUSE_S is a pause between the local commit and COMMIT: time to kill the program.
package main

import (
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"recipes/barrier"
	"recipes/clients"
)

const topic = "orders-in-go"

// orderListener lets the order database decide each transaction.
type orderListener struct {
	orders *sql.DB
	pause  time.Duration
}

func (l *orderListener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	err := barrier.Store(l.orders, clients.TransactionID(message), primitive.CommitMessageState,
		"INSERT INTO orders VALUES (?, ?)", message.GetKeys(), string(message.Body))
	if err != nil {
		fmt.Println("left to the check-back:", err)
		return primitive.UnknowState
	}
	fmt.Println(message.GetKeys(), "is stored")
	time.Sleep(l.pause)
	return primitive.CommitMessageState
}

func (l *orderListener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	state, err := barrier.Settle(l.orders, clients.TransactionID(&message.Message))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("check-back for %s: %s\n", message.GetKeys(), clients.Name(state))
	return state
}

func main() {
	orders, err := barrier.Open("orders.db", "orders (id TEXT PRIMARY KEY, cents INTEGER)")
	clients.Check(err)
	credits, err := barrier.Open("credits.db", "credits (order_id TEXT PRIMARY KEY, points INTEGER)")
	clients.Check(err)
	pause, _ := strconv.Atoi(os.Getenv("PAUSE_S")) // 0 if it is not set
	producer := clients.Producer("orders-in-go", &orderListener{orders, time.Duration(pause) * time.Second})
	for _, order := range os.Args[1:] {
		message := primitive.NewMessage(topic, []byte("2599"))
		message.WithKeys([]string{order})
		clients.Send(producer, message)
	}
	clients.Consume("credits-in-go", topic, func(message *primitive.MessageExt) error {
		cents, err := strconv.Atoi(string(message.Body))
		if err != nil {
			return err
		}
		// The message may come twice; the second time there is a row already.
		done, err := credits.Exec("INSERT OR IGNORE INTO credits VALUES (?, ?)", message.GetKeys(), cents/100)
		if err != nil {
			return err
		}
		if rows, _ := done.RowsAffected(); rows == 1 {
			fmt.Printf("%s: %d points\n", message.GetKeys(), cents/100)
		}
		return nil
	})
	select {}
}
