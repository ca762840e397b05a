package main

import (
	"strconv"
	"time"
)

const (
	queues        = 4
	brokerName    = "broker-a"
	producerGroup = "benchmark-producers"
	consumerGroup = "benchmark-consumers"
)

// How long a topic must stand still before what is missing counts as dropped: longer than the 3 s that Apache's broker lets
// an END_TRANSACTION wait (waitTimeMillsInTransactionQueue).
const (
	settledAfter = 5 * time.Second
	lookEvery    = 200 * time.Millisecond
)

// A topic of the broker, and a connection of its own for questions about it.
type topic struct {
	name    string
	control *connection
}

// createTopic makes sure that the broker has the topic. A topic that it has stays as it is.
func createTopic(address, name string) (*topic, error) {
	control, err := connect(address)
	if err != nil {
		return nil, err
	}
	count := strconv.Itoa(queues)
	_, err = control.ask(updateAndCreateTopic, nil,
		field{"topic", name}, field{"defaultTopic", "TBW102"}, field{"readQueueNums", count}, field{"writeQueueNums", count},
		field{"perm", "6"}, field{"topicFilterType", "SINGLE_TAG"}, field{"topicSysFlag", "0"}, field{"order", "false"})
	return &topic{name, control}, err
}

// visible is how many messages consumers can see: the sum of the queues' greatest offsets, counted by the broker.
func (t *topic) visible() (int64, error) {
	var total int64
	for queue := 0; queue < queues; queue++ {
		offset, err := t.maxOffset(queue)
		if err != nil {
			return 0, err
		}
		total += offset
	}
	return total, nil
}

func (t *topic) maxOffset(queue int) (int64, error) {
	answer, err := t.control.ask(getMaxOffset, nil, field{"topic", t.name}, field{"queueId", strconv.Itoa(queue)})
	if err != nil {
		return 0, err
	}
	return answer.number("offset")
}

// settled waits until so many messages are visible, or no more become visible; how many there are.
func (t *topic) settled(expected int64) (int64, error) {
	var seen int64 = -1
	since := time.Now()
	for {
		visible, err := t.visible()
		if err != nil || visible >= expected {
			return visible, err
		}
		if visible != seen {
			seen, since = visible, time.Now()
		}
		if time.Since(since) > settledAfter {
			return visible, nil
		}
		time.Sleep(lookEvery)
	}
}
