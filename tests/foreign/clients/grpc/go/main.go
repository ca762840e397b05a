// Apache's Go client of RocketMQ 5, unchanged: each case prints a line, its name and `ok`, or what went wrong.
//
//	conformance HOST:PORT PREFIX [CASE...]
//
// runs these cases, or all, at once, each with a topic that begins with the prefix.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const (
	within    = 120 * time.Second
	invisible = 30 * time.Second
	patience  = 30 * time.Second // of a request; a client that sends again after less may send twice
)

var cases = []struct {
	name string
	run  func(topic string)
}{
	{"plain-message", plainMessage},
	{"fifo-messages", fifoMessages},
	{"delayed-message", delayedMessage},
	{"tag-filter", tagFilter},
	{"sql-filter", sqlFilter},
	{"invisible-time-changed", invisibleTimeChanged},
	{"transaction-committed", transactionCommitted},
	{"transaction-rolled-back", transactionRolledBack},
	{"lost-decision-checked-back", lostDecisionCheckedBack},
	{"push-consumer-with-a-retry", pushConsumerWithARetry},
	{"push-consumer-to-dead-letters", pushConsumerToDeadLetters},
	{"fifo-push-consumer-to-dead-letters", fifoPushConsumerToDeadLetters},
}

func main() {
	lines := make([]string, len(cases))
	var running sync.WaitGroup
	for number, one := range cases {
		if len(os.Args) > 3 && !slices.Contains(os.Args[3:], one.name) {
			continue
		}
		running.Add(1)
		go func() {
			defer running.Done()
			lines[number] = one.name + " " + resultOf(one.run, os.Args[2]+one.name)
		}()
	}
	running.Wait()
	fmt.Println(strings.Join(lines, "\n"))
}

func resultOf(run func(topic string), topic string) (result string) {
	defer func() {
		if failure := recover(); failure != nil {
			result = fmt.Sprint(failure)
		}
	}()
	run(topic)
	return "ok"
}

func plainMessage(topic string) {
	one := message(topic, "hello")
	one.SetTag("red")
	one.SetKeys("a")
	one.AddProperty("x", "y")
	send(topic, one)
	consumer := simple(topic, rmq.SUB_ALL)
	defer consumer.GracefulStop()
	got := received(consumer, 1, invisible)[0]
	equal([]string{"hello", "red", "a", "y"}, []string{string(got.GetBody()), *got.GetTag(), got.GetKeys()[0], got.GetProperties()["x"]})
	must(consumer.Ack(context.Background(), got))
	more, _ := consumer.Receive(context.Background(), 16, invisible)
	equal(0, len(more))
}

func fifoMessages(topic string) {
	var messages []*rmq.Message
	for number := range 5 {
		one := message(topic, strconv.Itoa(number))
		one.SetMessageGroup("g")
		messages = append(messages, one)
	}
	send(topic, messages...)
	expectReceived(topic, rmq.SUB_ALL, "0", "1", "2", "3", "4")
}

func delayedMessage(topic string) {
	due := time.Now().Add(2 * time.Second)
	one := message(topic, "later")
	one.SetDelayTimestamp(due)
	send(topic, one)
	expectReceived(topic, rmq.SUB_ALL, "later")
	that(!time.Now().Before(due), "it came too early")
}

func tagFilter(topic string) {
	red, blue := message(topic, "red"), message(topic, "blue")
	red.SetTag("red")
	blue.SetTag("blue")
	send(topic, red, blue)
	expectReceived(topic, rmq.NewFilterExpression("blue"), "blue")
}

func sqlFilter(topic string) {
	little, much := message(topic, "little"), message(topic, "much")
	little.AddProperty("price", "5")
	much.AddProperty("price", "50")
	send(topic, little, much)
	expectReceived(topic, rmq.NewFilterExpressionWithType("price > 10", rmq.SQL92), "much")
}

func invisibleTimeChanged(topic string) {
	send(topic, message(topic, "again"))
	consumer := simple(topic, rmq.SUB_ALL)
	defer consumer.GracefulStop()
	must(consumer.ChangeInvisibleDuration(received(consumer, 1, 5*time.Minute)[0], 2*time.Second))
	second := received(consumer, 1, invisible)[0]
	equal(int32(2), second.GetDeliveryAttempt())
	must(consumer.Ack(context.Background(), second))
}

func transactionCommitted(topic string) {
	sender := producer(topic, rmq.COMMIT, make(chan bool, 9))
	defer sender.GracefulStop()
	transaction := sender.BeginTransaction()
	sent(sender.SendWithTransaction(context.Background(), message(topic, "tx"), transaction))
	must(transaction.Commit())
	expectReceived(topic, rmq.SUB_ALL, "tx")
}

func transactionRolledBack(topic string) {
	sender := producer(topic, rmq.ROLLBACK, make(chan bool, 9))
	defer sender.GracefulStop()
	transaction := sender.BeginTransaction()
	sent(sender.SendWithTransaction(context.Background(), message(topic, "tx"), transaction))
	must(transaction.RollBack())
	send(topic, message(topic, "after"))
	expectReceived(topic, rmq.SUB_ALL, "after")
}

func lostDecisionCheckedBack(topic string) {
	asked := make(chan bool, 9)
	sender := producer(topic, rmq.COMMIT, asked)
	defer sender.GracefulStop()
	sent(sender.SendWithTransaction(context.Background(), message(topic, "tx"), sender.BeginTransaction()))
	wait(asked, "no check-back")
	expectReceived(topic, rmq.SUB_ALL, "tx")
}

func pushConsumerWithARetry(topic string) {
	expectAttempts(topic, 1, message(topic, "hello"))
}

func pushConsumerToDeadLetters(topic string) {
	expectAttempts(topic, 2, message(topic, "hello"))
}

func fifoPushConsumerToDeadLetters(topic string) {
	one := message(topic, "hello")
	one.SetMessageGroup("g")
	expectAttempts(topic, 2, one)
}

// A push consumer that fails so often gets the message twice. After two failures it has to be a dead letter.
func expectAttempts(topic string, failures int, one *rmq.Message) {
	var lock sync.Mutex
	var attempts []int32
	delivered := make(chan bool, 9)
	consumer := made(rmq.NewPushConsumer(config("group-"+topic),
		rmq.WithPushAwaitDuration(2*time.Second),
		rmq.WithPushConsumptionThreadCount(2),
		rmq.WithPushMaxCacheMessageCount(16),
		rmq.WithPushMaxCacheMessageSizeInBytes(1<<20),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: func(view *rmq.MessageView) rmq.ConsumerResult {
			lock.Lock()
			defer lock.Unlock()
			attempts = append(attempts, view.GetDeliveryAttempt())
			if len(attempts) == 2 {
				delivered <- true
			}
			if len(attempts) <= failures {
				return rmq.FAILURE
			}
			return rmq.SUCCESS
		}})))
	consumer.SetRequestTimeout(patience)
	must(consumer.Start())
	defer consumer.GracefulStop()
	send(topic, one)
	wait(delivered, "not delivered twice")
	if failures == 2 {
		expectReceived("%DLQ%group-"+topic, rmq.SUB_ALL, "hello")
	}
	lock.Lock()
	defer lock.Unlock()
	equal([]int32{1, 2}, attempts)
}

func config(group string) *rmq.Config {
	return &rmq.Config{Endpoint: os.Args[1], ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func message(topic, body string) *rmq.Message {
	return &rmq.Message{Topic: topic, Body: []byte(body)}
}

func producer(topic string, answer rmq.TransactionResolution, asked chan<- bool) rmq.Producer {
	check := func(*rmq.MessageView) rmq.TransactionResolution {
		asked <- true
		return answer
	}
	sender := made(rmq.NewProducer(config(""), rmq.WithTopics(topic), rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: check})))
	sender.SetRequestTimeout(patience)
	must(sender.Start())
	return sender
}

func send(topic string, messages ...*rmq.Message) {
	sender := made(rmq.NewProducer(config(""), rmq.WithTopics(topic)))
	sender.SetRequestTimeout(patience)
	must(sender.Start())
	defer sender.GracefulStop()
	for _, one := range messages {
		sent(sender.Send(context.Background(), one))
	}
}

func sent(receipts []*rmq.SendReceipt, err error) {
	must(err)
	that(len(receipts) == 1 && receipts[0].MessageID != "", "no message id")
}

func simple(topic string, expression *rmq.FilterExpression) rmq.SimpleConsumer {
	consumer := made(rmq.NewSimpleConsumer(config("group-"+strings.Replace(topic, "%DLQ%group", "dead", 1)),
		rmq.WithSimpleAwaitDuration(2*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: expression})))
	consumer.SetRequestTimeout(patience)
	must(consumer.Start())
	return consumer
}

// So many messages; fewer when the time is up. The client says by an error that there is none yet.
func received(consumer rmq.SimpleConsumer, count int, invisible time.Duration) (found []*rmq.MessageView) {
	var last error
	for until := time.Now().Add(within); len(found) < count && time.Now().Before(until); {
		var more []*rmq.MessageView
		more, last = consumer.Receive(context.Background(), 16, invisible)
		found = append(found, more...)
	}
	that(len(found) > 0, fmt.Sprintf("nothing was received: %v", last))
	return found
}

func expectReceived(topic string, expression *rmq.FilterExpression, expected ...string) {
	consumer := simple(topic, expression)
	defer consumer.GracefulStop()
	var bodies []string
	for _, one := range received(consumer, len(expected), invisible) {
		bodies = append(bodies, string(one.GetBody()))
	}
	equal(expected, bodies)
}

func wait(done <-chan bool, otherwise string) {
	select {
	case <-done:
	case <-time.After(within):
		panic(otherwise)
	}
}

func made[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func that(holds bool, message string) {
	if !holds {
		panic(message)
	}
}

func equal(expected, actual any) {
	that(reflect.DeepEqual(expected, actual), fmt.Sprintf("expected %v, got %v", expected, actual))
}
