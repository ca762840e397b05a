package main

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"time"
)

const (
	pullBatch      = 32 // what a push consumer of RocketMQ asks for (pullBatchSize)
	suspend        = 2  // PullSysFlag: hold the pull until a message comes
	withExpression = 4  // PullSysFlag: the request brings its subscription
	suspendMs      = "15000"
)

// What pulls of a backlog gave.
type pulled struct {
	BeganS  float64 `json:"began_s"`
	EndedS  float64 `json:"ended_s"`
	PerS    float64 `json:"per_s"`    // messages
	MBPerS  float64 `json:"mb_per_s"` // 10^6 bytes of their bodies
	Items   int64   `json:"items"`    // messages that came, each counted once
	P50Ms   float64 `json:"p50_ms"`   // from a pull to its answer
	P99Ms   float64 `json:"p99_ms"`
	Missing int64   `json:"missing"`
	Doubled int64   `json:"doubled"`
}

func appendPull(out []byte, topicName string, queue int, offset int64, sysFlag int) []byte {
	return appendRequest(out, pullMessage, 0, int32(queue), nil,
		field{"consumerGroup", consumerGroup}, field{"topic", topicName}, field{"queueId", strconv.Itoa(queue)},
		field{"queueOffset", strconv.FormatInt(offset, 10)}, field{"maxMsgNums", strconv.Itoa(pullBatch)},
		field{"sysFlag", strconv.Itoa(sysFlag)}, field{"commitOffset", "0"}, field{"suspendTimeoutMillis", suspendMs},
		field{"subscription", "*"}, field{"subVersion", "0"}, field{"expressionType", "TAG"}, field{"bname", brokerName})
}

// drain pulls all messages of a topic whose numbers count from 0, one pull in flight for each queue, as push consumers do.
func drain(address, topicName string, messages int64) (*pulled, error) {
	topic, err := createTopic(address, topicName)
	if err != nil {
		return nil, err
	}
	connection, err := connect(address)
	if err != nil {
		return nil, err
	}
	var sentAt [queues]int64
	var ends [queues]int64
	var open int
	var first []byte
	for queue := range ends {
		if ends[queue], err = topic.maxOffset(queue); err != nil {
			return nil, err
		}
		if ends[queue] > 0 {
			first = appendPull(first, topicName, queue, 0, withExpression)
			open++
		}
	}
	inbox, waits, bytes := newInbox(messages), latencies{}, 0
	began := time.Now()
	for queue := range sentAt {
		sentAt[queue] = clock()
	}
	answered := func(answer *frame, out []byte) ([]byte, error) {
		if answer.code != success && answer.code != pullRetryImmediately {
			return out, refused(answer)
		}
		queue, now := int(answer.opaque), clock()
		waits.add(time.Duration(now - sentAt[queue]))
		next, err := answer.number("nextBeginOffset")
		if err != nil {
			return out, err
		}
		err = eachMessage(answer.body, func(_ int64, body []byte) error {
			bytes += len(body)
			return inbox.take(body)
		})
		if err != nil {
			return out, err
		}
		if next >= ends[queue] {
			open--
			return out, nil
		}
		sentAt[queue] = now
		return appendPull(out, topicName, queue, next, withExpression), nil
	}
	if err := connection.exchange(first, answered, func() bool { return open == 0 }); err != nil {
		return nil, err
	}
	ended := time.Now()
	elapsed := ended.Sub(began).Seconds()
	return &pulled{
		BeganS:  epochS(began),
		EndedS:  epochS(ended),
		PerS:    float64(inbox.distinct) / elapsed,
		MBPerS:  float64(bytes) / elapsed / 1e6,
		Items:   inbox.distinct,
		P50Ms:   waits.quantileMs(0.50),
		P99Ms:   waits.quantileMs(0.99),
		Missing: messages - inbox.distinct,
		Doubled: inbox.doubled,
	}, nil
}

// An inbox counts which numbers of messages came, and which came again.
type inbox struct {
	came              []bool
	distinct, doubled int64
}

func newInbox(messages int64) *inbox { return &inbox{came: make([]bool, messages)} }

func (i *inbox) take(body []byte) error {
	number := binary.BigEndian.Uint64(body)
	if number >= uint64(len(i.came)) {
		return fmt.Errorf("a message came with the number %d, and %d were sent", number, len(i.came))
	}
	if i.came[number] {
		i.doubled++
		return nil
	}
	i.came[number] = true
	i.distinct++
	return nil
}
