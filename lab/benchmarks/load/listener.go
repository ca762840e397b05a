package main

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// atOnce is how many transactions may be without an answer while a listener is measured. A broker that is slower than that fails.
const atOnce = 4096

// What a load of a steady rate with a listener gave.
type heard struct {
	BeganS  float64 `json:"began_s"`
	EndedS  float64 `json:"ended_s"`
	PerS    float64 `json:"per_s"`  // messages that came in a second
	Items   int64   `json:"items"`  // messages that came and were sent while it was measured
	P50Ms   float64 `json:"p50_ms"` // from before the send of the half message to the listener
	P99Ms   float64 `json:"p99_ms"`
	Missing int64   `json:"missing"`
	Doubled int64   `json:"doubled"`
	Errors  int64   `json:"errors"` // sends that were refused
	Error   string  `json:"error,omitempty"`
}

// listen sends transactions at a steady rate and takes the messages as they become visible: a pull is held for each queue.
func listen(address, topicName string, perSecond, bodySize int, warmUp, measured time.Duration) (*heard, error) {
	if _, err := createTopic(address, topicName); err != nil {
		return nil, err
	}
	total := int64(float64(perSecond) * (warmUp + measured).Seconds())
	paced, err := newPacedSender(address, topicName, bodySize)
	if err != nil {
		return nil, err
	}
	listener, err := newListener(address, topicName, total, &paced.refused)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	listener.from = clock() + int64(warmUp)
	failures := make(chan error, 3)
	go func() { failures <- listener.run() }()
	go func() { failures <- paced.answers(total) }()
	go func() { failures <- paced.sends(total, perSecond) }()
	for range [3]struct{}{} {
		if err := <-failures; err != nil {
			return nil, err
		}
	}
	ended := began.Add(warmUp + measured)
	return &heard{
		BeganS:  epochS(began.Add(warmUp)),
		EndedS:  epochS(ended),
		PerS:    float64(len(listener.latencies)) / measured.Seconds(),
		Items:   int64(len(listener.latencies)),
		P50Ms:   listener.latencies.quantileMs(0.50),
		P99Ms:   listener.latencies.quantileMs(0.99),
		Missing: total - paced.refused - listener.inbox.distinct,
		Doubled: listener.inbox.doubled,
		Errors:  paced.refused,
		Error:   paced.firstError,
	}, nil
}

// A listener holds a pull for each queue and notes when each message comes.
type listener struct {
	connection *connection
	topicName  string
	total      int64
	refused    *int64 // of these, how many the broker refused so far
	inbox      *inbox
	from       int64 // latencies count for what was sent from then on
	latencies  latencies
}

func newListener(address, topicName string, total int64, refused *int64) (*listener, error) {
	connection, err := connect(address)
	return &listener{connection: connection, topicName: topicName, total: total, refused: refused, inbox: newInbox(total)}, err
}

// run returns when all messages came, or none for some time.
func (l *listener) run() error {
	var first []byte
	for queue := 0; queue < queues; queue++ {
		first = appendPull(first, l.topicName, queue, 0, withExpression|suspend)
	}
	lastCame := clock()
	answered := func(answer *frame, out []byte) ([]byte, error) {
		if !answer.isResponse {
			return out, nil
		}
		if answer.code != success && answer.code != pullNotFound && answer.code != pullRetryImmediately {
			return out, refused(answer)
		}
		now := clock()
		next, err := answer.number("nextBeginOffset")
		if err != nil {
			return out, err
		}
		if answer.code == success {
			lastCame = now
			err = eachMessage(answer.body, func(_ int64, body []byte) error {
				if sentAt := int64(binary.BigEndian.Uint64(body[8:])); sentAt >= l.from {
					l.latencies.add(time.Duration(now - sentAt))
				}
				return l.inbox.take(body)
			})
		}
		return appendPull(out, l.topicName, int(answer.opaque), next, withExpression|suspend), err
	}
	return l.connection.exchange(first, answered, func() bool {
		return l.inbox.distinct+atomic.LoadInt64(l.refused) == l.total || time.Duration(clock()-lastCame) > settledAfter
	})
}

// A pacedSender sends transactions by the clock, whether or not earlier ones were answered.
type pacedSender struct {
	connection *connection
	template   *template
	writing    sync.Mutex
	answered   int64
	refused    int64
	firstError string
}

func newPacedSender(address, topicName string, bodySize int) (*pacedSender, error) {
	connection, err := connect(address)
	return &pacedSender{connection: connection, template: newTemplate(topicName, true, bodySize)}, err
}

func (p *pacedSender) sends(total int64, perSecond int) error {
	began := time.Now()
	for number := int64(0); number < total; number++ {
		time.Sleep(time.Until(began.Add(time.Duration(number) * time.Second / time.Duration(perSecond))))
		if number-atomic.LoadInt64(&p.answered) > atOnce {
			return fmt.Errorf("the broker cannot follow %d transactions a second: %d have no answer", perSecond, atOnce)
		}
		if err := p.write(p.template.append(nil, int32(number), number)); err != nil {
			return err
		}
	}
	return nil
}

// answers commits each half message when its answer comes.
func (p *pacedSender) answers(total int64) error {
	commit := func(answer *frame, out []byte) ([]byte, error) {
		if !answer.isResponse || answer.opaque == endOpaque {
			return out, nil
		}
		defer atomic.AddInt64(&p.answered, 1)
		if answer.code != success {
			if atomic.AddInt64(&p.refused, 1) == 1 {
				p.firstError = refused(answer).Error()
			}
			return out, nil
		}
		out, err := appendCommit(out, int64(answer.opaque), answer)
		if err == nil {
			err = p.write(out)
		}
		return out[:0], err
	}
	return p.connection.exchange(nil, commit, func() bool { return atomic.LoadInt64(&p.answered) == total })
}

func (p *pacedSender) write(frames []byte) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.connection.write(frames)
}
