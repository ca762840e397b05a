// Three payments: the bank accepts one, refuses one, and answers late for one. Each customer who has paid gets one coupon.
package main

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"recipes/barrier"
	"recipes/clients"
)

const topic = "payments-in-go"

// paymentListener stores payments. An answer of the bank that comes later is in the database before the check-back asks for it.
type paymentListener struct {
	payments *sql.DB
	answers  map[string]primitive.LocalTransactionState
}

func (l *paymentListener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	customer := string(message.Body)
	state := l.answers[customer]
	if state == primitive.RollbackMessageState {
		return state // nothing to store
	}
	if err := barrier.Store(l.payments, clients.TransactionID(message), state,
		"INSERT INTO payments VALUES (?, ?)", message.GetKeys(), customer); err != nil {
		fmt.Println("left to the check-back:", err)
		return primitive.UnknowState
	}
	return state
}

func (l *paymentListener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	state, err := barrier.Settle(l.payments, clients.TransactionID(&message.Message))
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("check-back for %s: %s\n", message.Body, clients.Name(state))
	return state
}

func main() {
	payments, err := barrier.Open("payments.db", "payments (id TEXT PRIMARY KEY, customer TEXT)")
	clients.Check(err)
	coupons, err := barrier.Open("coupons.db", "coupons (payment_id TEXT PRIMARY KEY, customer TEXT)")
	clients.Check(err)
	producer := clients.Producer("payments-in-go", &paymentListener{payments, map[string]primitive.LocalTransactionState{
		"ada": primitive.CommitMessageState, "bob": primitive.RollbackMessageState, "eve": primitive.UnknowState,
	}})
	var late string
	for _, customer := range []string{"ada", "bob", "eve"} {
		message := primitive.NewMessage(topic, []byte(customer))
		message.WithKeys([]string{fmt.Sprintf("%s-%d", customer, time.Now().UnixNano())})
		fmt.Printf("%s pays: %s\n", customer, clients.Name(clients.Send(producer, message)))
		late = clients.TransactionID(message)
	}
	clients.Consume("coupons-in-go", topic, func(message *primitive.MessageExt) error {
		// The message may come twice; the second time there is a row already.
		done, err := coupons.Exec("INSERT OR IGNORE INTO coupons VALUES (?, ?)", message.GetKeys(), string(message.Body))
		if err != nil {
			return err
		}
		if rows, _ := done.RowsAffected(); rows == 1 {
			fmt.Printf("a coupon for %s\n", message.Body)
		}
		return nil
	})
	clients.Check(barrier.Conclude(payments, late, primitive.CommitMessageState))
	fmt.Println("eve has paid")
	select {}
}
