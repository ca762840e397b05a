package main

import "time"

const (
	steadySeconds = 3    // so many seconds in a row
	steadyWithin  = 0.05 // may differ by less than this share of the greatest of their rates
)

// What a warm-up gave.
type warmedUp struct {
	Seconds  int     `json:"seconds"`   // how long it took
	IsSteady bool    `json:"is_steady"` // whether its last seconds were steady
	PerS     float64 `json:"per_s"`     // messages that became visible in the last second
}

func isSteady(perS []float64) bool {
	if len(perS) < steadySeconds {
		return false
	}
	last := perS[len(perS)-steadySeconds:]
	least, most := last[0], last[0]
	for _, rate := range last {
		if rate < least {
			least = rate
		}
		if rate > most {
			most = rate
		}
	}
	return most > 0 && most-least < steadyWithin*most
}

// untilSteady puts a load on the broker until its rate is steady, at least and at most for the given times. It returns when all
// that the broker took is visible or dropped, so that no COMMIT of this load counts in a measurement after it.
func untilSteady(address, topicName string, isHalf bool, inFlight, bodySize int, atLeast, atMost time.Duration) (*warmedUp, error) {
	topic, sender, err := newLoad(address, topicName, isHalf, inFlight, bodySize)
	if err != nil {
		return nil, err
	}
	earlier, err := topic.visible()
	if err != nil {
		return nil, err
	}
	result, watched := &warmedUp{}, make(chan error, 1)
	go func() {
		defer func() { sender.until.Store(clock()) }()
		watched <- result.watch(topic, atLeast, atMost)
	}()
	if err := sender.run(); err != nil {
		return nil, err
	}
	if err := <-watched; err != nil {
		return nil, err
	}
	_, err = topic.settled(earlier + sender.taken)
	return result, err
}

// watch counts the messages that became visible in each second until they are steady or the time is over.
func (w *warmedUp) watch(topic *topic, atLeast, atMost time.Duration) error {
	began := time.Now()
	before, beforeAt := int64(0), began
	var perS []float64
	for {
		visible, err := topic.visible()
		if err != nil {
			return err
		}
		now := time.Now()
		if now.Sub(began) >= time.Second {
			perS = append(perS, float64(visible-before)/now.Sub(beforeAt).Seconds())
			w.Seconds, w.IsSteady, w.PerS = int(now.Sub(began).Seconds()), isSteady(perS), perS[len(perS)-1]
		}
		if elapsed := now.Sub(began); elapsed >= atMost || w.IsSteady && elapsed >= atLeast {
			return nil
		}
		before, beforeAt = visible, now
		time.Sleep(time.Second)
	}
}
