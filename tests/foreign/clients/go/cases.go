package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	commit   = primitive.CommitMessageState
	rollback = primitive.RollbackMessageState
	unknown  = primitive.UnknowState
)

var cases = []struct {
	name string
	run  func(*suite) error
}{
	{"send-sync", sendSync},
	{"send-async", sendAsync},
	{"send-oneway", sendOneway},
	{"tag-filter", tagFilter},
	{"sql-filter", sqlFilter},
	{"tx-commit", txCommit},
	{"tx-rollback", txRollback},
	{"tx-unknown-then-commit", txUnknownThenCommit},
	{"tx-unknown-then-rollback", txUnknownThenRollback},
	{"tx-unknown-twice-then-commit", txUnknownTwiceThenCommit},
	{"tx-exactly-the-committed-once", txExactlyTheCommittedOnce},
	{"retry", retry},
	{"request-reply", requestReply},
	{"request-timeout", requestTimeout},
}

func sendSync(s *suite) error {
	result, err := s.plain.SendSync(context.Background(), s.message("sync", tagPlain))
	if err != nil {
		return err
	}
	if result.Status != primitive.SendOK {
		return fmt.Errorf("the send status is %d", result.Status)
	}
	return s.arrives("sync", result.MsgID)
}

func sendAsync(s *suite) error {
	outcome := make(chan error, 1)
	callback := func(_ context.Context, _ *primitive.SendResult, err error) { outcome <- err }
	if err := s.plain.SendAsync(context.Background(), callback, s.message("async", tagPlain)); err != nil {
		return err
	}
	if err := <-outcome; err != nil {
		return err
	}
	return s.arrives("async", "")
}

func sendOneway(s *suite) error {
	if err := s.plain.SendOneWay(context.Background(), s.message("oneway", tagPlain)); err != nil {
		return err
	}
	return s.arrives("oneway", "")
}

func tagFilter(s *suite) error {
	for _, tag := range []string{tagOther, tagPlain} {
		if _, err := s.plain.SendSync(context.Background(), s.message("filter-"+tag, tag)); err != nil {
			return err
		}
	}
	if err := s.arrives("filter-"+tagPlain, ""); err != nil {
		return err
	}
	time.Sleep(time.Second)
	return s.hasCome("filter-"+tagOther, 0)
}

// sqlFilter has a consumer of its own, with a subscription by the properties of messages.
func sqlFilter(s *suite) error {
	box := newInbox()
	filtering, err := rocketmq.NewPushConsumer(consumer.WithNsResolver(s.names),
		consumer.WithGroupName("go_filtering_"+s.stamp), consumer.WithInstance("filtering"+s.stamp),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset), consumer.WithCredentials(account()))
	if err != nil {
		return err
	}
	defer func() { _ = filtering.Shutdown() }()
	selector := consumer.MessageSelector{Type: consumer.SQL92, Expression: "n BETWEEN 2 AND 3 OR colour = 'green'"}
	if err := filtering.Subscribe(s.topic, selector, box.consume); err != nil {
		return err
	}
	if err := filtering.Start(); err != nil {
		return err
	}
	for _, n := range []string{"1", "2", "3", "4"} {
		message := s.message("numbered-"+n, tagOther)
		message.WithProperty("n", n)
		if n == "4" {
			message.WithProperty("colour", "green")
		}
		if _, err := s.plain.SendSync(context.Background(), message); err != nil {
			return err
		}
	}
	for _, n := range []string{"2", "3", "4"} {
		if !box.waitFor("numbered-"+n, 1, patience) {
			return fmt.Errorf("of the messages that match only %v came", box.keys())
		}
	}
	time.Sleep(time.Second)
	if keys := box.keys(); len(keys) != 3 {
		return fmt.Errorf("came, and not all of them match: %v", keys)
	}
	return nil
}

func retry(s *suite) error {
	sent, err := s.plain.SendSync(context.Background(), s.message("retry", tagAgain))
	if err != nil {
		return err
	}
	if !s.inbox.waitFor("retry", 2, patience) {
		return s.hasCome("retry", 2)
	}
	second := s.inbox.received("retry")[1]
	if second.ReconsumeTimes != 1 || second.MsgId != sent.MsgID || second.Topic != s.topic {
		return fmt.Errorf("redelivered as %s", second)
	}
	return nil
}

func requestReply(s *suite) error {
	reply, err := s.request("request", 30*time.Second)
	if err != nil {
		return fmt.Errorf("%w; the reply failed with %v", err, s.replyFailed.Load())
	}
	if string(reply.Body) != "reply to body of request" {
		return fmt.Errorf("the reply is %q", reply.Body)
	}
	return s.arrives("request", "")
}

func requestTimeout(s *suite) error {
	if reply, err := s.request("unanswered", 2*time.Second); err == nil {
		return fmt.Errorf("a reply that nobody sent: %s", reply)
	}
	return s.arrives("unanswered", "")
}

// request sends a message and waits for the reply to it, in a client of its own.
func (s *suite) request(key string, atMost time.Duration) (*primitive.Message, error) {
	requester, err := rocketmq.NewProducer(producer.WithNsResolver(s.names),
		producer.WithGroupName("go_requests_"+s.stamp), producer.WithInstanceName(key+s.stamp), producer.WithCredentials(account()))
	if err != nil {
		return nil, err
	}
	started := time.Now()
	if err := requester.Start(); err != nil {
		return nil, err
	}
	defer requester.Shutdown()
	// A reply finds its way by the heartbeat, which the client sends 1 s after its start, and each 30 s from then on, to the
	// brokers that it knows by then.
	if _, err := requester.SendSync(context.Background(), s.message("before-"+key, tagOther)); err != nil {
		return nil, err
	}
	heartbeat := time.Second
	if time.Since(started) > 900*time.Millisecond {
		heartbeat += 30 * time.Second
	}
	time.Sleep(time.Until(started.Add(heartbeat + 2*time.Second)))
	return requester.Request(context.Background(), atMost, s.message(key, tagPlain))
}

func txCommit(s *suite) error {
	sent, err := s.sendInTransaction("tx-commit", plan{local: commit})
	if err != nil {
		return err
	}
	if sent.State != commit {
		return fmt.Errorf("the local state is %d", sent.State)
	}
	if err := s.arrives("tx-commit", sent.MsgID); err != nil {
		return err
	}
	if id := s.inbox.received("tx-commit")[0].TransactionId; id != sent.MsgID {
		return fmt.Errorf("the transaction id is %q to the consumer, the message id %q to the producer", id, sent.MsgID)
	}
	return nil
}

func txRollback(s *suite) error {
	return swiftly("tx-rollback", func(key string) error {
		start := time.Now()
		if _, err := s.sendInTransaction(key, plan{local: rollback}); err != nil {
			return err
		}
		took := time.Since(start)
		time.Sleep(silence)
		if err := s.hasCome(key, 0); err != nil {
			return err
		}
		checks := len(s.ledger.checksOf(key))
		if checks != 0 && took >= transactionTimeout/2 {
			return fmt.Errorf("the rollback took %s: %w", took, errSlow)
		}
		if checks != 0 {
			return fmt.Errorf("checked %d times after the rollback", checks)
		}
		return nil
	})
}

func txUnknownThenCommit(s *suite) error {
	sent, err := s.sendInTransaction("tx-check-commit", plan{unknown, []primitive.LocalTransactionState{commit}})
	if err != nil {
		return err
	}
	if err := s.arrives("tx-check-commit", sent.MsgID); err != nil {
		return err
	}
	checks := s.ledger.checksOf("tx-check-commit")
	if len(checks) == 0 {
		return fmt.Errorf("came before the check")
	}
	asked := checks[0]
	if asked.Topic != s.topic || asked.TransactionId != sent.MsgID || string(asked.Body) != "body of tx-check-commit" {
		return fmt.Errorf("checked with %s", asked)
	}
	return nil
}

func txUnknownThenRollback(s *suite) error {
	return swiftly("tx-check-rollback", func(key string) error {
		if _, err := s.sendInTransaction(key, plan{unknown, []primitive.LocalTransactionState{rollback}}); err != nil {
			return err
		}
		if !eventually(patience, func() bool { return len(s.ledger.checksOf(key)) > 0 }) {
			return fmt.Errorf("no check came")
		}
		time.Sleep(silence)
		if err := s.hasCome(key, 0); err != nil {
			return err
		}
		return s.wasChecked(key, 1)
	})
}

func txUnknownTwiceThenCommit(s *suite) error {
	answers := []primitive.LocalTransactionState{unknown, commit}
	return swiftly("tx-check-twice", func(key string) error {
		if _, err := s.sendInTransaction(key, plan{unknown, answers}); err != nil {
			return err
		}
		if err := s.arrives(key, ""); err != nil {
			return err
		}
		return s.wasChecked(key, 2)
	})
}

// txExactlyTheCommittedOnce mixes thirty transactions of six ways to end, and counts when all has become silent.
func txExactlyTheCommittedOnce(s *suite) error {
	ways := []plan{
		{local: commit},
		{local: rollback},
		{unknown, []primitive.LocalTransactionState{commit}},
		{unknown, []primitive.LocalTransactionState{rollback}},
		{unknown, []primitive.LocalTransactionState{unknown, commit}},
		{unknown, []primitive.LocalTransactionState{unknown, rollback}},
	}
	wanted := map[string]int{}
	for i := 0; i < 30; i++ {
		key, way := fmt.Sprintf("mixed-%d", i), ways[i%len(ways)]
		if _, err := s.sendInTransaction(key, way); err != nil {
			return err
		}
		wanted[key] = 0
		if way.local == commit || (len(way.checks) > 0 && way.checks[len(way.checks)-1] == commit) {
			wanted[key] = 1
		}
	}
	for key, count := range wanted {
		if !s.inbox.waitFor(key, count, patience) {
			return s.hasCome(key, count)
		}
	}
	time.Sleep(silence)
	for key, count := range wanted {
		if err := s.hasCome(key, count); err != nil {
			return err
		}
	}
	return nil
}

var errSlow = errors.New("this machine is too slow to tell")

// swiftly runs a case again, with another key, if the client was delayed so long that the broker rightly checked back (again).
func swiftly(key string, attempt func(key string) error) error {
	err := errSlow
	for try := 1; try <= 5 && errors.Is(err, errSlow); try++ {
		err = attempt(fmt.Sprintf("%s-%d", key, try))
	}
	return err
}

func (s *suite) sendInTransaction(key string, p plan) (*primitive.TransactionSendResult, error) {
	s.ledger.expect(key, p)
	return s.transactions.SendMessageInTransaction(context.Background(), s.message(key, tagPlain))
}

// arrives waits for the message, and looks whether it is the one sent; an empty id is not compared.
func (s *suite) arrives(key, messageId string) error {
	if !s.inbox.waitFor(key, 1, patience) {
		return fmt.Errorf("%s did not arrive; arrived have %v", key, s.inbox.keys())
	}
	message := s.inbox.received(key)[0]
	if string(message.Body) != "body of "+key || (messageId != "" && message.MsgId != messageId) {
		return fmt.Errorf("received %s, sent with id %s", message, messageId)
	}
	return s.hasCome(key, 1)
}

func (s *suite) hasCome(key string, times int) error {
	if count := len(s.inbox.received(key)); count != times {
		return fmt.Errorf("%s came %d times instead of %d", key, count, times)
	}
	return nil
}

// wasChecked counts check-backs. Two in less than their interval: the first was held up, so the broker asked again before it
// was answered.
func (s *suite) wasChecked(key string, times int) error {
	checks := s.ledger.checksOf(key)
	for i := 1; i < len(checks) && len(checks) > times; i++ {
		if checks[i].at.Sub(checks[i-1].at) < checkInterval/2 {
			return fmt.Errorf("%s was checked %d times: %w", key, len(checks), errSlow)
		}
	}
	if len(checks) != times {
		return fmt.Errorf("%s was checked %d times instead of %d", key, len(checks), times)
	}
	return nil
}
