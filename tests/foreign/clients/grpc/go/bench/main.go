// Puts a load on a broker by gRPC with Apache's Go client of RocketMQ 5, and prints what came of it as one line of JSON.
//
//	bench HOST:PORT MODE -topic TOPIC [OPTION...]
//
// MODE is "sends" (plain messages), "transactions" (half messages, each committed when its answer comes) or "receives"
// (messages received, 32 at most with each call, and each acknowledged). Calls of one client run side by side.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const (
	patience  = 30 * time.Second // of a request
	startUp   = time.Minute      // the client gives a proxy that has just started 5 s for a connection
	await     = 5 * time.Second  // of a receive without messages
	batch     = 32
	invisible = 5 * time.Minute
)

// What a load gave. "Measured" is what ended between BeganS and EndedS, after the warm-up.
type result struct {
	BeganS float64 `json:"began_s"` // seconds since the epoch
	EndedS float64 `json:"ended_s"`
	Items  int     `json:"items"` // messages that were answered while it was measured
	PerS   float64 `json:"per_s"`
	P50Ms  float64 `json:"p50_ms"` // from the first call for a message to the last answer
	P99Ms  float64 `json:"p99_ms"`
	Taken  int     `json:"taken"` // all messages that were answered, warm-up included
	Errors int     `json:"errors"`
	Error  string  `json:"error,omitempty"`
}

// One call or two, for some messages; how many messages came of it.
type work func(context.Context) (int, error)

func main() {
	rmq.EnableSsl = false // like the client of the other rows
	options := flag.NewFlagSet("bench", flag.ExitOnError)
	topic := options.String("topic", "Benchmark", "the topic, which the broker has")
	inFlight := options.Int("in-flight", 32, "calls without an answer at any time")
	body := options.Int("body", 1024, "bytes of a message's body")
	warmUp := options.Duration("warm-up", 5*time.Second, "how long the load runs before it is measured")
	measured := options.Duration("measured", 10*time.Second, "how long it is measured")
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: bench HOST:PORT sends|transactions|receives [OPTION...]"))
	}
	options.Parse(os.Args[3:])
	one, stop, err := prepared(os.Args[1], os.Args[2], *topic, make([]byte, *body))
	for until := time.Now().Add(startUp); err != nil && time.Now().Before(until); {
		one, stop, err = prepared(os.Args[1], os.Args[2], *topic, make([]byte, *body))
	}
	if err != nil {
		fail(err)
	}
	printed := run(one, *inFlight, *warmUp, *measured)
	stop()
	json.NewEncoder(os.Stdout).Encode(printed)
}

func prepared(endpoint, mode, topic string, body []byte) (work, func() error, error) {
	config := &rmq.Config{Endpoint: endpoint, ConsumerGroup: "benchmark-consumers", Credentials: &credentials.SessionCredentials{}}
	if mode == "receives" {
		consumer, err := rmq.NewSimpleConsumer(config, rmq.WithSimpleAwaitDuration(await),
			rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
		if err != nil {
			return nil, nil, err
		}
		consumer.SetRequestTimeout(patience)
		return receive(consumer), consumer.GracefulStop, consumer.Start()
	}
	commit := func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT }
	producer, err := rmq.NewProducer(config, rmq.WithTopics(topic), rmq.WithTransactionChecker(&rmq.TransactionChecker{Check: commit}))
	if err != nil {
		return nil, nil, err
	}
	producer.SetRequestTimeout(patience)
	message := func() *rmq.Message { return &rmq.Message{Topic: topic, Body: body} }
	switch mode {
	case "sends":
		return func(calls context.Context) (int, error) {
			_, err := producer.Send(calls, message())
			return 1, err
		}, producer.GracefulStop, producer.Start()
	case "transactions":
		return func(calls context.Context) (int, error) {
			transaction := producer.BeginTransaction()
			if _, err := producer.SendWithTransaction(calls, message(), transaction); err != nil {
				return 0, err
			}
			return 1, transaction.Commit()
		}, producer.GracefulStop, producer.Start()
	}
	return nil, nil, fmt.Errorf("no such mode: %s", mode)
}

func receive(consumer rmq.SimpleConsumer) work {
	return func(calls context.Context) (int, error) {
		messages, err := consumer.Receive(calls, batch, invisible)
		if err != nil && strings.Contains(err.Error(), "MESSAGE_NOT_FOUND") {
			return 0, nil
		}
		for _, one := range messages {
			if err = consumer.Ack(calls, one); err != nil {
				return 0, err
			}
		}
		return len(messages), err
	}
}

// run keeps so many calls in flight until warm-up and measurement are over, and all are answered.
func run(one work, inFlight int, warmUp, measured time.Duration) result {
	from := time.Now().Add(warmUp)
	to := from.Add(measured)
	var lock sync.Mutex
	var found result
	var latencies []time.Duration
	took := func(messages int, began, ended time.Time, err error) {
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			found.Errors++
			if found.Error == "" {
				found.Error = err.Error()
			}
			return
		}
		found.Taken += messages
		if ended.After(from) && ended.Before(to) && messages > 0 {
			found.Items += messages
			latencies = append(latencies, ended.Sub(began))
		}
	}
	var running sync.WaitGroup
	for range inFlight {
		running.Add(1)
		go func() {
			defer running.Done()
			for began := time.Now(); began.Before(to); began = time.Now() {
				messages, err := one(context.Background())
				took(messages, began, time.Now(), err)
			}
		}()
	}
	running.Wait()
	found.BeganS, found.EndedS = epochS(from), epochS(to)
	found.PerS = float64(found.Items) / measured.Seconds()
	found.P50Ms, found.P99Ms = quantileMs(latencies, 0.50), quantileMs(latencies, 0.99)
	return found
}

// quantileMs is the latency that the given share of all does not exceed; 0 where there are none.
func quantileMs(latencies []time.Duration, share float64) float64 {
	if len(latencies) == 0 {
		return 0
	}
	slices.Sort(latencies)
	return float64(latencies[int(share*float64(len(latencies)-1))].Microseconds()) / 1000
}

func epochS(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}
