// Command load places orders over HTTP, and prints the times of each request and answer as one line of JSON. It needs so little of
// the processor that the services are the limit.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

const customers = 50

// placed is an order that was answered with 201; times in seconds since the epoch.
type placed struct {
	OrderID   string  `json:"order_id"`
	BeganS    float64 `json:"began_s"`
	AnsweredS float64 `json:"answered_s"`
}

// placing is the result of a load.
type placing struct {
	mutex   sync.Mutex
	Orders  []placed `json:"orders"`
	Refused int      `json:"refused"` // requests with any other answer, or none
	Seconds float64  `json:"seconds"`
	number  int
}

func main() {
	var (
		url      = flag.String("url", "", "the order service's `URL`")
		inFlight = flag.Int("in-flight", 0, "so many requests without an answer at any time")
		rate     = flag.Float64("rate", 0, "or so many new requests a second, whatever the answers do")
		seconds  = flag.Float64("seconds", 10, "how long")
	)
	flag.Parse()
	if *url == "" || (*inFlight < 1) == (*rate <= 0) || *seconds <= 0 {
		fmt.Fprintln(os.Stderr, "load: -url is needed, and one of -in-flight and -rate, above 0")
		os.Exit(2)
	}
	connections := &http.Transport{MaxIdleConnsPerHost: 500, MaxConnsPerHost: 500}
	client := &http.Client{Transport: connections, Timeout: 30 * time.Second}
	result := &placing{Orders: []placed{}}
	if *rate > 0 {
		result.atRate(client, *url+"/orders", *rate, *seconds)
	} else {
		result.inFlight(client, *url+"/orders", *inFlight, *seconds)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

// atRate starts requests independent of the answers: a slow service does not slow the load.
func (p *placing) atRate(client *http.Client, url string, rate, seconds float64) {
	began := time.Now()
	var requests sync.WaitGroup
	for number := 0; number < int(rate*seconds+0.5); number++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(number) / rate * float64(time.Second)))))
		requests.Add(1)
		go func() {
			defer requests.Done()
			p.place(client, url)
		}()
	}
	requests.Wait()
	p.Seconds = seconds
}

func (p *placing) inFlight(client *http.Client, url string, inFlight int, seconds float64) {
	began := time.Now()
	end := began.Add(time.Duration(seconds * float64(time.Second)))
	var placers sync.WaitGroup
	for count := 0; count < inFlight; count++ {
		placers.Add(1)
		go func() {
			defer placers.Done()
			for time.Now().Before(end) {
				p.place(client, url)
			}
		}()
	}
	placers.Wait()
	p.Seconds = time.Since(began).Seconds()
}

func (p *placing) place(client *http.Client, url string) {
	p.mutex.Lock()
	number := p.number
	p.number++
	p.mutex.Unlock()
	body := fmt.Sprintf(`{"customer": "customer-%02d", "items": [{"name": "book", "quantity": 1, "price_cents": %d}]}`,
		number%customers, 1000+number%500)
	began := time.Now()
	id, err := place(client, url, []byte(body))
	answered := time.Now()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err != nil {
		p.Refused++
		return
	}
	p.Orders = append(p.Orders, placed{id, float64(began.UnixMicro()) / 1e6, float64(answered.UnixMicro()) / 1e6})
}

// place returns the order's id.
func place(client *http.Client, url string, body []byte) (string, error) {
	answer, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	if answer.StatusCode != http.StatusCreated {
		return "", fmt.Errorf("%s: %s", answer.Status, text)
	}
	var placed struct {
		Order struct {
			OrderID string `json:"order_id"`
		} `json:"order"`
	}
	err = json.Unmarshal(text, &placed)
	return placed.Order.OrderID, err
}
