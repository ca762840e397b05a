package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// operation is a line of a history. lab/judged/operations.py says what its fields mean.
type operation struct {
	Model    string   `json:"model"`
	Object   string   `json:"object"`
	Name     string   `json:"name"`
	CallNs   int64    `json:"call_ns"`
	ReturnNs *int64   `json:"return_ns"`
	Result   string   `json:"result"`
	Order    string   `json:"order"`
	Offset   int      `json:"offset"`
	Orders   []string `json:"orders"`
	Count    int      `json:"count"`
}

var models = map[string]porcupine.Model{
	"order": modelOf(order{}, stepOrder),
	"queue": modelOf(0, stepQueue),
	"group": modelOf(0, stepGroup),
}

func modelOf[S any](first S, step func(S, operation) (bool, S)) porcupine.Model {
	return porcupine.Model{
		Init:              func() interface{} { return first },
		Step:              func(state, input, _ interface{}) (bool, interface{}) { return step(state.(S), input.(operation)) },
		DescribeOperation: describe,
		DescribeState:     func(state interface{}) string { return fmt.Sprintf("%+v", state) },
	}
}

func describe(input, output interface{}) string {
	o := input.(operation)
	return fmt.Sprintf("%s %s%s offset %d orders %v count %d", o.Name, o.Result, o.Order, o.Offset, o.Orders, o.Count)
}

// order is an order with its message and its credit.
type order struct {
	State      string // "", "PENDING", "COMMITTED" or "ROLLED_BACK"
	ID         string // "" until an operation shows it
	IsCredited bool
}

var placing = map[string]string{"place": "COMMITTED", "place later": "PENDING", "place too much": ""}
var deciding = map[string]string{"pay": "COMMITTED", "cancel": "ROLLED_BACK"}

func stepOrder(o order, op operation) (bool, order) {
	if placed, is := placing[op.Name]; is {
		return place(o, op, placed)
	}
	if decided, is := deciding[op.Name]; is {
		return decide(o, op, decided)
	}
	switch op.Name {
	case "read state":
		return op.Result == o.State, o
	case "deliver":
		isKnown, seen := identified(o, op.Order)
		return isKnown && o.State == "COMMITTED", seen
	case "credit":
		isRight := o.State == "COMMITTED" && !o.IsCredited
		o.IsCredited = true
		return isRight, o
	case "read credits":
		return op.Count == credits(o), o
	case "end":
		return (len(op.Orders) > 0) == (o.State == "COMMITTED") && o.IsCredited == (o.State == "COMMITTED") && op.Count == credits(o), o
	}
	return false, o
}

func place(o order, op operation, placed string) (bool, order) {
	switch op.Result {
	case "done":
		if o.State == "" {
			o.State = placed
		}
		isKnown, seen := identified(o, op.Order)
		return isKnown && placed != "", seen
	case "refused":
		return o.State == "", o
	}
	if o.State == "" {
		o.State = placed
	}
	return true, o
}

func decide(o order, op operation, decided string) (bool, order) {
	switch op.Result {
	case "refused":
		return o.State != "PENDING" && o.State != decided, o
	case "missing":
		return o.State == "", o
	}
	if o.State == "PENDING" {
		o.State = decided
	}
	return op.Result != "done" || o.State == decided, o
}

func identified(o order, id string) (bool, order) {
	if o.ID == "" {
		o.ID = id
	}
	return o.ID == id, o
}

func credits(o order) int {
	if o.IsCredited {
		return 1
	}
	return 0
}

// stepQueue has as state the length of the queue. Each offset at which a pull has shown an order is one append: two orders at one
// offset are two appends, of which only one can be next.
func stepQueue(length int, op operation) (bool, int) {
	switch {
	case op.Name == "append":
		return op.Offset == length, length + 1
	case op.Name == "pull" && len(op.Orders) == 0:
		return length <= op.Offset, length
	}
	return op.Name == "pull" && op.Offset+len(op.Orders) <= length, length
}

// stepGroup has as state the offset before which the group has consumed all messages of a queue. A message may come again; none is
// left out, and none comes before its turn.
func stepGroup(next int, op operation) (bool, int) {
	switch op.Name {
	case "consume":
		if op.Result == "done" && op.Offset == next {
			return true, next + 1
		}
		return op.Offset <= next, next
	case "end":
		return op.Offset == next, next
	}
	return false, next
}
