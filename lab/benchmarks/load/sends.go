package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// What a load of transactions or sends gave. "Measured" is what lies between BeganS and EndedS, after the warm-up.
type sent struct {
	BeganS  float64 `json:"began_s"` // seconds since the epoch
	EndedS  float64 `json:"ended_s"`
	PerS    float64 `json:"per_s"`       // messages that became visible in a second, as the broker counts them
	TakenS  float64 `json:"taken_per_s"` // messages that the broker took (answered SUCCESS) in a second
	Items   int64   `json:"items"`       // messages that became visible while it was measured
	P50Ms   float64 `json:"p50_ms"`      // from a send to its answer
	P99Ms   float64 `json:"p99_ms"`
	Taken   int64   `json:"taken"`           // all messages that the broker took, warm-up included
	Visible int64   `json:"visible"`         // all of these that consumers can see in the end
	Refused int64   `json:"refused_commits"` // COMMITs of which the broker said that it dropped them
	Errors  int64   `json:"errors"`          // sends that were refused, or not answered
	Error   string  `json:"error,omitempty"`
}

// A sender keeps a number of messages in flight on one connection. Half messages are committed when their answer comes.
type sender struct {
	connection *connection
	template   *template
	isHalf     bool // whether half messages are sent
	commits    bool // whether they are committed
	inFlight   []flight
	numbers    int64        // how many messages were sent
	limit      int64        // send no more than that
	waiting    int          // messages without an answer
	until      atomic.Int64 // the time after which nothing is sent
	taken      int64
	refused    int64 // COMMITs
	errors     int64
	firstError string
	measured   latencies
	from, to   int64 // latencies count for what was sent in between
}

type flight struct{ number, sentAt int64 }

func newSender(address, topicName string, isHalf bool, inFlight, bodySize int) (*sender, error) {
	connection, err := connect(address)
	made := &sender{
		connection: connection,
		template:   newTemplate(topicName, isHalf, bodySize),
		isHalf:     isHalf,
		commits:    isHalf,
		inFlight:   make([]flight, inFlight),
		limit:      1 << 62,
	}
	made.until.Store(1 << 62)
	return made, err
}

// run sends until the limit or the time is reached and all answers came.
func (s *sender) run() error {
	var first []byte
	for slot := range s.inFlight {
		first = s.next(first, int32(slot))
	}
	err := s.connection.exchange(first, s.answered, func() bool { return s.waiting == 0 })
	if errors.Is(err, os.ErrDeadlineExceeded) && clock() > s.until.Load() {
		s.failed(int64(s.waiting), fmt.Sprintf("%d sends were not answered within %s", s.waiting, patience))
		return nil
	}
	return err
}

func (s *sender) failed(count int64, why string) {
	s.errors += count
	if s.firstError == "" {
		s.firstError = why
	}
}

func (s *sender) next(out []byte, slot int32) []byte {
	now := clock()
	if s.numbers >= s.limit || now >= s.until.Load() {
		return out
	}
	s.inFlight[slot] = flight{s.numbers, now}
	out = s.template.append(out, slot, s.numbers)
	s.numbers++
	s.waiting++
	return out
}

// answered takes the answer to the message in a slot (its opaque), and appends the COMMIT and the slot's next message.
func (s *sender) answered(answer *frame, out []byte) ([]byte, error) {
	if !answer.isResponse {
		return out, nil // a check-back or a notice
	}
	if answer.opaque == endOpaque {
		s.refused++
		return out, nil
	}
	if answer.opaque < 0 || int(answer.opaque) >= len(s.inFlight) {
		return out, fmt.Errorf("an answer has the opaque %d, which was not sent", answer.opaque)
	}
	message, now := s.inFlight[answer.opaque], clock()
	isMeasured := message.sentAt >= s.from && message.sentAt < s.to
	s.waiting--
	if answer.code != success {
		s.failed(1, refused(answer).Error())
		return s.next(out, answer.opaque), nil
	}
	s.taken++
	if isMeasured {
		s.measured.add(time.Duration(now - message.sentAt))
	}
	if s.commits {
		var err error
		if out, err = appendCommit(out, message.number, answer); err != nil {
			return out, err
		}
	}
	return s.next(out, answer.opaque), nil
}

// newLoad creates a topic and the sender of a load on it.
func newLoad(address, topicName string, isHalf bool, inFlight, bodySize int) (*topic, *sender, error) {
	topic, err := createTopic(address, topicName)
	if err != nil {
		return nil, nil, err
	}
	sender, err := newSender(address, topicName, isHalf, inFlight, bodySize)
	return topic, sender, err
}

// sendForAWhile puts a load on the broker for the warm-up and the seconds that are measured.
func sendForAWhile(address, topicName string, isHalf bool, inFlight, bodySize int, warmUp, measured time.Duration) (*sent, error) {
	topic, sender, err := newLoad(address, topicName, isHalf, inFlight, bodySize)
	if err != nil {
		return nil, err
	}
	earlier, err := topic.visible()
	if err != nil {
		return nil, err
	}
	began := clock()
	sender.from, sender.to = began+int64(warmUp), began+int64(warmUp+measured)
	sender.until.Store(sender.to)
	window := make(chan visibleWindow, 1)
	go func() { window <- watch(topic, warmUp, measured) }()
	if err := sender.run(); err != nil {
		return nil, err
	}
	counted := <-window
	if counted.err != nil {
		return nil, counted.err
	}
	visible, err := topic.settled(earlier + sender.taken)
	return &sent{
		BeganS:  epochS(counted.began),
		EndedS:  epochS(counted.ended),
		PerS:    float64(counted.messages) / counted.ended.Sub(counted.began).Seconds(),
		TakenS:  float64(len(sender.measured)) / measured.Seconds(),
		Items:   counted.messages,
		P50Ms:   sender.measured.quantileMs(0.50),
		P99Ms:   sender.measured.quantileMs(0.99),
		Taken:   sender.taken,
		Visible: visible - earlier,
		Refused: sender.refused,
		Errors:  sender.errors,
		Error:   sender.firstError,
	}, err
}

// A visibleWindow says how many messages became visible from one time to another.
type visibleWindow struct {
	began, ended time.Time
	messages     int64
	err          error
}

func watch(topic *topic, warmUp, measured time.Duration) visibleWindow {
	time.Sleep(warmUp)
	before, err := topic.visible()
	if err != nil {
		return visibleWindow{err: err}
	}
	began := time.Now()
	time.Sleep(measured)
	after, err := topic.visible()
	return visibleWindow{began, time.Now(), after - before, err}
}

func epochS(at time.Time) float64 { return float64(at.UnixNano()) / 1e9 }
