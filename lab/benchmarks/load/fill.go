package main

import (
	"errors"
	"fmt"
	"time"
)

const (
	batchMessages   = 128
	batchesInFlight = 8
	halvesInFlight  = 128
)

// What filling a store gave.
type filled struct {
	BeganS  float64 `json:"began_s"`
	EndedS  float64 `json:"ended_s"`
	PerS    float64 `json:"per_s"`
	Items   int64   `json:"items"`
	Visible int64   `json:"visible"`
}

// fill sends plain messages in batches, as many as asked for. Their numbers count from 0.
func fill(address, topicName string, messages int64, bodySize int) (*filled, error) {
	topic, err := createTopic(address, topicName)
	if err != nil {
		return nil, err
	}
	connection, err := connect(address)
	if err != nil {
		return nil, err
	}
	body, sentMessages, waiting := randomBody(bodySize), int64(0), 0
	next := func(out []byte) []byte {
		count := messages - sentMessages
		if count == 0 {
			return out
		}
		if count > batchMessages {
			count = batchMessages
		}
		queue := int(sentMessages / batchMessages % queues)
		out = appendBatch(out, 1, topicName, queue, sentMessages, count, body)
		sentMessages += count
		waiting++
		return out
	}
	began := time.Now()
	var first []byte
	for range [batchesInFlight]struct{}{} {
		first = next(first)
	}
	answered := func(answer *frame, out []byte) ([]byte, error) {
		if answer.code != success {
			return out, refused(answer)
		}
		waiting--
		return next(out), nil
	}
	if err := connection.exchange(first, answered, func() bool { return waiting == 0 }); err != nil {
		return nil, err
	}
	return filledSince(began, topic, messages, messages)
}

// fillHalves sends half messages that nobody decides.
func fillHalves(address, topicName string, messages int64, bodySize int) (*filled, error) {
	topic, sender, err := newLoad(address, topicName, true, halvesInFlight, bodySize)
	if err != nil {
		return nil, err
	}
	sender.commits, sender.limit = false, messages
	began := time.Now()
	if err := sender.run(); err != nil {
		return nil, err
	}
	if sender.errors > 0 {
		return nil, errors.New(sender.firstError)
	}
	return filledSince(began, topic, messages, 0)
}

func filledSince(began time.Time, topic *topic, messages, expected int64) (*filled, error) {
	ended := time.Now()
	visible, err := topic.settled(expected)
	if err == nil && visible != expected {
		err = fmt.Errorf("%d messages are visible, and %d should be", visible, expected)
	}
	return &filled{epochS(began), epochS(ended), float64(messages) / ended.Sub(began).Seconds(), messages, visible}, err
}
