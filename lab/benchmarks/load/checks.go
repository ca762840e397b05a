package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	heartbeatEvery  = 10 * time.Second
	checksLateAfter = 120 * time.Second // longer than any transactionCheckInterval of a benchmark
)

// What answering check-backs gave.
type checked struct {
	BeganS  float64 `json:"began_s"`
	EndedS  float64 `json:"ended_s"`
	Seconds float64 `json:"seconds"` // from the first check-back to the last message that became visible
	PerS    float64 `json:"per_s"`
	Items   int64   `json:"items"`
	Checks  int64   `json:"checks"`  // check-backs that came; more than Items: some came again
	Missing int64   `json:"missing"` // transactions whose message did not become visible
	Doubled int64   `json:"doubled"` // messages that became visible twice
}

// answerChecks commits every transaction the broker asks about, until as many messages are visible as were pending.
func answerChecks(address, topicName string, pending int64) (*checked, error) {
	topic, err := createTopic(address, topicName)
	if err != nil {
		return nil, err
	}
	connection, err := connect(address)
	if err != nil {
		return nil, err
	}
	checks, began, done := int64(0), make(chan time.Time, 1), make(chan error, 1)
	go func() {
		done <- connection.exchange(heartbeat(), func(asked *frame, out []byte) ([]byte, error) {
			if asked.isResponse || asked.code != checkTransactionState {
				return out, nil
			}
			if atomic.AddInt64(&checks, 1) == 1 {
				began <- time.Now()
			}
			return appendEnd(out, string(asked.value("msgId")), string(asked.value("commitLogOffset")),
				string(asked.value("tranStateTableOffset")), "true"), nil
		}, func() bool { return false })
	}()
	beats := time.NewTicker(heartbeatEvery)
	defer beats.Stop()
	result := &checked{}
	err = result.await(topic, pending, connection, began, beats.C, done)
	result.Checks = atomic.LoadInt64(&checks)
	return result, err
}

// await looks at the topic until all is visible, or nothing more becomes visible. Then what came too often would be there, too.
func (c *checked) await(
	topic *topic, pending int64, connection *connection, began <-chan time.Time, beats <-chan time.Time, failed <-chan error,
) error {
	look := time.NewTicker(lookEvery / 4)
	defer look.Stop()
	first, lastGrowth, visible := time.Time{}, time.Now(), int64(0)
	for {
		select {
		case err := <-failed:
			return err
		case first = <-began:
		case <-beats:
			if err := connection.write(heartbeat()); err != nil {
				return err
			}
			continue
		case <-look.C:
		}
		now, err := topic.visible()
		if err != nil {
			return err
		}
		if now != visible {
			visible, lastGrowth = now, time.Now()
		}
		isOver := visible >= pending && time.Since(lastGrowth) > settledAfter
		if !isOver && time.Since(lastGrowth) < checksLateAfter {
			continue
		}
		if first.IsZero() {
			return fmt.Errorf("the broker sent no check-back for %d pending transactions within %s", pending, checksLateAfter)
		}
		c.BeganS, c.EndedS = epochS(first), epochS(lastGrowth)
		c.Seconds = lastGrowth.Sub(first).Seconds()
		c.Items, c.PerS = visible, float64(visible)/c.Seconds
		if visible < pending {
			c.Missing = pending - visible
		} else {
			c.Doubled = visible - pending
		}
		return nil
	}
}

// heartbeat is the frame by which the broker learns that this connection speaks for the producer group.
func heartbeat() []byte {
	body, err := json.Marshal(map[string]any{
		"clientID":        "127.0.0.1@benchmark-" + strconv.FormatInt(startedAt.UnixNano(), 10),
		"producerDataSet": []map[string]string{{"groupName": producerGroup}},
		"consumerDataSet": []string{},
	})
	if err != nil {
		panic(err) // strings always become JSON
	}
	return appendRequest(nil, heartBeat, 0, 0, body)
}
