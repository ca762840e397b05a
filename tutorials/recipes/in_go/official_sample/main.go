// What Apache's sample does: ten half messages, each decided by a counter at its check-back. Do not copy it.
package main

import (
	"fmt"
	"sync"

	"github.com/apache/rocketmq-client-go/v2/primitive"

	"recipes/clients"
)

const topic = "TopicTestInGo"

var tags = []string{"TagA", "TagB", "TagC", "TagD", "TagE"}

// transactionListener keeps its decisions in memory. After a restart it answers COMMIT to all.
type transactionListener struct {
	mutex            sync.Mutex
	transactionIndex int
	localTrans       map[string]int
}

func (l *transactionListener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.localTrans[clients.TransactionID(message)] = l.transactionIndex % 3
	l.transactionIndex++
	return primitive.UnknowState
}

func (l *transactionListener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch index, known := l.localTrans[clients.TransactionID(&message.Message)]; {
	case known && index == 0:
		return primitive.UnknowState
	case index == 2:
		return primitive.RollbackMessageState
	default:
		return primitive.CommitMessageState
	}
}

func main() {
	producer := clients.Producer("sample-in-go", &transactionListener{localTrans: map[string]int{}})
	for i := 0; i < 10; i++ {
		message := primitive.NewMessage(topic, []byte(fmt.Sprintf("Hello RocketMQ %d", i)))
		message.WithTag(tags[i%len(tags)]).WithKeys([]string{fmt.Sprintf("KEY%d", i)})
		fmt.Printf("KEY%d: %s\n", i, clients.Name(clients.Send(producer, message)))
	}
	clients.Consume("sample-readers-in-go", topic, func(message *primitive.MessageExt) error {
		fmt.Printf("delivered: %s [%s]\n", message.Body, message.GetTags())
		return nil
	})
	select {}
}
