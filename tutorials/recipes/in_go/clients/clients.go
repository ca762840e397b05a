// Package clients starts Apache's producer and consumer. The name server's address is NAMESRV_ADDR, or 127.0.0.1:9876.
package clients

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

var namesrvAddr = primitive.NamesrvAddr{"127.0.0.1:9876"}

func init() {
	rlog.SetLogLevel("fatal") // else the client logs each ROLLBACK and UNKNOWN of a local transaction as an error
	if addr := os.Getenv("NAMESRV_ADDR"); addr != "" {
		namesrvAddr = primitive.NamesrvAddr{addr}
	}
}

// Producer returns a transaction producer that answers check-backs with the listener.
func Producer(group string, listener primitive.TransactionListener) rocketmq.TransactionProducer {
	started, err := rocketmq.NewTransactionProducer(listener, producer.WithGroupName(group),
		producer.WithNameServer(namesrvAddr), producer.WithSendMsgTimeout(10*time.Second))
	Check(err)
	Check(started.Start())
	return started
}

// Send sends the message in a transaction, and returns the state after the local transaction.
func Send(sender rocketmq.TransactionProducer, message *primitive.Message) primitive.LocalTransactionState {
	result, err := sender.SendMessageInTransaction(context.Background(), message)
	Check(err)
	return result.State
}

// waitForRoute waits until the name server knows the topic, at most ten seconds. Apache's broker reports a new topic a moment
// after its first message. A consumer that starts before that fails for good, and ends the producer's connections, too.
func waitForRoute(topic string) {
	names, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver(namesrvAddr)))
	Check(err)
	defer names.Close()
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := names.FetchPublishMessageQueues(context.Background(), topic)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			Check(fmt.Errorf("the name server does not know the topic %s: %w", topic, err))
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Consume starts a consumer. If handle returns an error, the broker delivers the message again later.
func Consume(group, topic string, handle func(*primitive.MessageExt) error) {
	waitForRoute(topic)
	started, err := rocketmq.NewPushConsumer(consumer.WithGroupName(group), consumer.WithNameServer(namesrvAddr),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	Check(err)
	Check(started.Subscribe(topic, consumer.MessageSelector{},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			for _, message := range messages {
				if err := handle(message); err != nil {
					fmt.Println("delivered again later:", err)
					return consumer.ConsumeRetryLater, nil
				}
			}
			return consumer.ConsumeSuccess, nil
		}))
	Check(started.Start())
}

// TransactionID returns the id that the local transaction and the check-back both see.
func TransactionID(message *primitive.Message) string {
	return message.GetProperty(primitive.PropertyUniqueClientMessageIdKeyIndex)
}

// Name returns the state's name in the protocol.
func Name(state primitive.LocalTransactionState) string {
	return map[primitive.LocalTransactionState]string{
		primitive.CommitMessageState: "COMMIT", primitive.RollbackMessageState: "ROLLBACK", primitive.UnknowState: "UNKNOWN",
	}[state]
}

// Check ends the program if something failed that nobody can answer for.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
