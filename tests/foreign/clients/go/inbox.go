package main

import (
	"context"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// inbox keeps what a push consumer receives, by key, and asks once more for messages tagged "again".
type inbox struct {
	mutex    sync.Mutex
	messages map[string][]*primitive.MessageExt
}

func newInbox() *inbox {
	return &inbox{messages: map[string][]*primitive.MessageExt{}}
}

func (box *inbox) consume(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	result := consumer.ConsumeSuccess
	for _, message := range messages {
		key := message.GetKeys()
		box.messages[key] = append(box.messages[key], message)
		if message.GetTags() == tagAgain && message.ReconsumeTimes == 0 {
			if concurrent, found := primitive.GetConcurrentlyCtx(ctx); found {
				concurrent.DelayLevelWhenNextConsume = 1
			}
			result = consumer.ConsumeRetryLater
		}
	}
	return result, nil
}

// received gives the messages with this key, in the order they came.
func (box *inbox) received(key string) []*primitive.MessageExt {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	return append([]*primitive.MessageExt(nil), box.messages[key]...)
}

func (box *inbox) keys() []string {
	box.mutex.Lock()
	defer box.mutex.Unlock()
	keys := make([]string, 0, len(box.messages))
	for key := range box.messages {
		keys = append(keys, key)
	}
	return keys
}

// waitFor waits until so many messages with the key have come, and says whether they have.
func (box *inbox) waitFor(key string, count int, atMost time.Duration) bool {
	return eventually(atMost, func() bool { return len(box.received(key)) >= count })
}

func eventually(atMost time.Duration, isTrue func() bool) bool {
	for deadline := time.Now().Add(atMost); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if isTrue() {
			return true
		}
	}
	return isTrue()
}
