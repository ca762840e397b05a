// Apache's Go client against a broker: a transaction producer and push consumers; one line of PASS or FAIL for each case.
//
//	go run . NAMESRV_ADDR
//
// With ACCESS_KEY and SECRET_KEY in the environment the clients sign their requests.
//
// The broker has to check back soon (transactionCheckInterval 2000, transactionTimeOut 1000), to create topics by itself, and to
// filter by properties (enablePropertyFilter true).
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const (
	tagPlain = "plain"
	tagAgain = "again"
	tagOther = "other"

	// patience is how long to wait for what has to come, silence how long for what must not.
	// The client looks for new routes and sends heartbeats each 30 s, and rebalances its queues each 20 s.
	patience = 70 * time.Second
	silence  = 4 * time.Second

	// What the broker is expected to be configured with.
	checkInterval      = 2 * time.Second
	transactionTimeout = time.Second
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . NAMESRV_ADDR")
		os.Exit(2)
	}
	rlog.SetLogLevel("fatal")
	if err := run(os.Args[1]); err != nil {
		fmt.Println("FAIL", err)
		os.Exit(1)
	}
}

func run(namesrvAddr string) error {
	suite, err := start(namesrvAddr)
	if err != nil {
		return err
	}
	defer suite.stop()
	failed := 0
	for _, c := range cases {
		if err := c.run(suite); err != nil {
			failed++
			fmt.Printf("FAIL %s %v\n", c.name, err)
		} else {
			fmt.Printf("PASS %s\n", c.name)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d cases", failed, len(cases))
	}
	return nil
}

// suite is what the cases share: producers, and a consumer of all their messages but those tagged "other".
type suite struct {
	names        primitive.NsResolver
	stamp        string
	topic        string
	ledger       *ledger
	transactions rocketmq.TransactionProducer
	plain        rocketmq.Producer
	consumer     rocketmq.PushConsumer
	inbox        *inbox
	replyFailed  atomic.Value
}

func start(namesrvAddr string) (*suite, error) {
	names := primitive.NewPassthroughResolver([]string{namesrvAddr})
	stamp := fmt.Sprintf("%d", time.Now().UnixNano())
	s := &suite{names: names, stamp: stamp, topic: "go_" + stamp, ledger: newLedger(), inbox: newInbox()}
	var err error
	if s.transactions, err = rocketmq.NewTransactionProducer(s.ledger, producer.WithNsResolver(names),
		producer.WithGroupName("go_transactions_"+stamp), producer.WithInstanceName("transactions"+stamp),
		producer.WithCredentials(account())); err != nil {
		return nil, err
	}
	if s.plain, err = rocketmq.NewProducer(producer.WithNsResolver(names),
		producer.WithGroupName("go_plain_"+stamp), producer.WithInstanceName("plain"+stamp),
		producer.WithCredentials(account())); err != nil {
		return nil, err
	}
	if s.consumer, err = rocketmq.NewPushConsumer(consumer.WithNsResolver(names),
		consumer.WithGroupName("go_consumer_"+stamp), consumer.WithInstance("consumer"+stamp),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithCredentials(account())); err != nil {
		return nil, err
	}
	if err := s.plain.Start(); err != nil {
		return nil, err
	}
	if err := s.transactions.Start(); err != nil {
		return nil, err
	}
	// The first message makes the topic, so that the consumer finds its queues at once. It comes from the transaction
	// producer because its first heartbeat, after 1 s, goes to the brokers it knows by then.
	if _, err := s.sendInTransaction("first", plan{local: commit}); err != nil {
		return nil, fmt.Errorf("first send: %w", err)
	}
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: tagPlain + " || " + tagAgain}
	if err := s.consumer.Subscribe(s.topic, selector, s.consume); err != nil {
		return nil, err
	}
	return s, s.consumer.Start()
}

// account is what requests are signed with, if the environment names one; without keys the client signs none.
func account() primitive.Credentials {
	return primitive.Credentials{AccessKey: os.Getenv("ACCESS_KEY"), SecretKey: os.Getenv("SECRET_KEY")}
}

func (s *suite) stop() {
	_ = s.consumer.Shutdown()
	_ = s.transactions.Shutdown()
	_ = s.plain.Shutdown()
}

// consume keeps the messages, and replies to those whose sender waits for a reply, unless they are keyed "unanswered".
func (s *suite) consume(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	for _, message := range messages {
		if consumer.GetReplyToClient(message) == "" || message.GetKeys() == "unanswered" {
			continue
		}
		reply, err := consumer.CreateReplyMessage(message, nil)
		if err == nil {
			reply.Body = append([]byte("reply to "), message.Body...)
			_, err = s.plain.SendSync(ctx, reply)
		}
		if err != nil {
			s.replyFailed.Store(err.Error())
		}
	}
	return s.inbox.consume(ctx, messages...)
}

func (s *suite) message(key, tag string) *primitive.Message {
	return primitive.NewMessage(s.topic, []byte("body of "+key)).WithKeys([]string{key}).WithTag(tag)
}
