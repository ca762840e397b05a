package main

import (
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// ledger is a transaction listener that answers by message key: `local` when the half message is stored, then each
// answer of `checks` in turn, the last one from then on.
type ledger struct {
	mutex  sync.Mutex
	plans  map[string]plan
	checks map[string][]checkBack
}

type checkBack struct {
	*primitive.MessageExt
	at time.Time
}

type plan struct {
	local  primitive.LocalTransactionState
	checks []primitive.LocalTransactionState
}

func newLedger() *ledger {
	return &ledger{plans: map[string]plan{}, checks: map[string][]checkBack{}}
}

func (l *ledger) expect(key string, p plan) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.plans[key] = p
}

// ExecuteLocalTransaction answers as planned.
func (l *ledger) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.plans[message.GetKeys()].local
}

// CheckLocalTransaction answers as planned for this check, and keeps the message it was asked about.
func (l *ledger) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := message.GetKeys()
	answer := l.plans[key].local
	for i, planned := range l.plans[key].checks {
		if i <= len(l.checks[key]) {
			answer = planned
		}
	}
	l.checks[key] = append(l.checks[key], checkBack{message, time.Now()})
	return answer
}

func (l *ledger) checksOf(key string) []checkBack {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return append([]checkBack(nil), l.checks[key]...)
}
