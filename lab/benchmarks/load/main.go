// Command load puts a load on a RocketMQ broker by one connection with many requests in flight, and prints what came of it as
// one line of JSON. It needs so little of the processor that the broker is the limit, as Apache's clients do not.
//
// It speaks RocketMQ's remoting protocol with binary headers, and commits one-way, as Apache's clients do. What is visible in the
// end it asks the broker, so that a COMMIT which the broker dropped is not counted.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"
)

const usage = `usage: load MODE -broker HOST:PORT [OPTION...]

MODE is one of
  transactions  half messages, each committed when its answer comes
  sends         plain messages
  listener      transactions at a steady rate, and the time until a held pull has each message
  fill          plain messages in batches, as many as -messages says
  halves        half messages that nobody decides, as many as -messages says
  pulls         pulls what fill sent
  checks        answers the check-backs of what halves sent
  floor         listens at -broker, and does the least that a broker must do for transactions and sends

`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	options := flag.NewFlagSet("load", flag.ExitOnError)
	options.Usage = func() { fmt.Fprint(os.Stderr, usage); options.PrintDefaults() }
	var (
		broker   = options.String("broker", "", "the broker's `HOST:PORT`")
		topic    = options.String("topic", "Benchmark", "the topic; created where it does not exist")
		inFlight = options.Int("in-flight", 32, "messages without an answer at any time")
		body     = options.Int("body", 1024, "bytes of a message's body")
		messages = options.Int64("messages", 100_000, "how many messages")
		rate     = options.Int("rate", 1000, "transactions a second of the mode listener")
		warmUp   = options.Duration("warm-up", 5*time.Second, "how long the load runs before it is measured")
		measured = options.Duration("measured", 10*time.Second, "how long it is measured")
		atMost   = options.Duration("until-steady", 0, "transactions, sends: measure nothing; end when the rate is steady, after -warm-up at the earliest and this `TIME` at the latest")
		file     = options.String("file", "", "floor: the `FILE` to append to")
		isSynced = options.Bool("sync", false, "floor: respond after a sync")
	)
	mode := os.Args[1]
	options.Parse(os.Args[2:])
	if *broker == "" || *inFlight < 1 || *body < bodyHead || *messages < 1 || *rate < 1 {
		fmt.Fprintf(os.Stderr, "load: -broker is needed; -body is at least %d, the other numbers at least 1\n", bodyHead)
		os.Exit(2)
	}
	var result any
	var err error
	switch mode {
	case "transactions", "sends":
		if *atMost > 0 {
			result, err = untilSteady(*broker, *topic, mode == "transactions", *inFlight, *body, *warmUp, *atMost)
			break
		}
		result, err = sendForAWhile(*broker, *topic, mode == "transactions", *inFlight, *body, *warmUp, *measured)
	case "listener":
		result, err = listen(*broker, *topic, *rate, *body, *warmUp, *measured)
	case "fill":
		result, err = fill(*broker, *topic, *messages, *body)
	case "halves":
		result, err = fillHalves(*broker, *topic, *messages, *body)
	case "pulls":
		result, err = drain(*broker, *topic, *messages)
	case "checks":
		result, err = answerChecks(*broker, *topic, *messages)
	case "floor":
		err = listenAsFloor(*broker, *file, *isSynced)
	default:
		options.Usage()
		os.Exit(2)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}
