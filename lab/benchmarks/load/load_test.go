package main

import (
	"bytes"
	"encoding/binary"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func decoded(t *testing.T, request []byte) frame {
	t.Helper()
	read, _, err := readFrame(bytes.NewReader(request), nil)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestARequestIsReadAsItWasWritten(t *testing.T) {
	request := appendRequest([]byte("before"), sendMessageV2, 0, 77, []byte("body"), field{"a", "group"}, field{"b", "topic"})
	read := decoded(t, request[len("before"):])
	if read.code != sendMessageV2 || read.opaque != 77 || read.isResponse || string(read.body) != "body" {
		t.Errorf("read %+v", read)
	}
	if string(read.value("b")) != "topic" || read.value("c") != nil {
		t.Errorf("b is %q, c is %q", read.value("b"), read.value("c"))
	}
}

func TestARequestInJSONIsReadAsWell(t *testing.T) {
	header := `{"code":39,"extFields":{"commitLogOffset":"3085"},"flag":2,"language":"JAVA","opaque":5,"version":407}`
	read, err := decodeHeader(0, []byte(header))
	if err != nil || read.code != checkTransactionState || string(read.value("commitLogOffset")) != "3085" {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestATornFrameIsAnError(t *testing.T) {
	request := appendRequest(nil, heartBeat, 0, 0, nil)
	request[7] = 200 // the header's length
	if _, _, err := readFrame(bytes.NewReader(request), nil); err == nil {
		t.Error("a header longer than its frame was read")
	}
}

func TestAMessageHasItsNumberInQueueKeyAndBody(t *testing.T) {
	template := newTemplate("topic", true, 100)
	template.append(nil, 0, 1)
	read := decoded(t, template.append(nil, 9, 0x1237))
	if string(read.value("e")) != "3" || read.opaque != 9 || len(read.body) != 100 {
		t.Errorf("queue %q, opaque %d, %d bytes", read.value("e"), read.opaque, len(read.body))
	}
	if !bytes.Contains(read.value("i"), []byte("UNIQ_KEY\x0100000000000000000000000000001237\x02")) {
		t.Errorf("properties %q", read.value("i"))
	}
	if binary.BigEndian.Uint64(read.body) != 0x1237 || string(read.value("f")) != "4" {
		t.Errorf("number %x, sysFlag %q", read.body[:8], read.value("f"))
	}
}

func TestACommitHasTheOffsetsOfTheAnswer(t *testing.T) {
	answer := decoded(t, appendRequest(nil, success, responseFlag, 0, nil,
		field{"msgId", "7F00000100002A9F00000000000004D2"}, field{"queueOffset", "17"}))
	out, err := appendCommit(nil, 5, &answer)
	if err != nil {
		t.Fatal(err)
	}
	commit := decoded(t, out)
	if string(commit.value("commitLogOffset")) != "1234" || string(commit.value("tranStateTableOffset")) != "17" ||
		string(commit.value("commitOrRollback")) != "8" || string(commit.value("msgId")) != "00000000000000000000000000000005" {
		t.Errorf("fields %q", commit.fields)
	}
	if flag := binary.BigEndian.Uint32(out[17:]); flag != onewayFlag {
		t.Errorf("flag %d", flag)
	}
}

func TestARefusedCommitIsNoAnswerToAMessage(t *testing.T) {
	sender := &sender{template: newTemplate("topic", true, 16), inFlight: make([]flight, 1), limit: 2, commits: true}
	sender.until.Store(1 << 62)
	sender.next(nil, 0)
	answer := decoded(t, appendRequest(nil, success, responseFlag, 0, nil,
		field{"msgId", "7F00000100002A9F00000000000004D2"}, field{"queueOffset", "17"}))
	out, err := sender.answered(&answer, nil)
	if err != nil {
		t.Fatal(err)
	}
	commit := decoded(t, out)
	refusal := decoded(t, appendRequest(nil, 2, responseFlag, commit.opaque, nil))
	if _, err := sender.answered(&refusal, nil); err != nil {
		t.Fatal(err)
	}
	if sender.waiting != 1 || sender.errors != 0 || sender.refused != 1 {
		t.Errorf("%d wait, %d errors, %d refused", sender.waiting, sender.errors, sender.refused)
	}
}

func record(queueOffset uint64, sysFlag uint32, hostBytes int, body []byte) []byte {
	out := make([]byte, 36)
	binary.BigEndian.PutUint64(out[20:], queueOffset)
	out = binary.BigEndian.AppendUint32(out, sysFlag)
	out = append(out, make([]byte, 8+hostBytes+8+hostBytes+4+8)...)
	out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
	out = append(append(out, body...), 1, 'T', 0, 0)
	binary.BigEndian.PutUint32(out, uint32(len(out)))
	return out
}

func TestRecordsAreReadWithHostsOfBothLengths(t *testing.T) {
	records := append(record(7, 0, 8, make([]byte, 16)), record(8, 0x30, 20, make([]byte, 20))...)
	var offsets []int64
	var sizes []int
	err := eachMessage(records, func(queueOffset int64, body []byte) error {
		offsets, sizes = append(offsets, queueOffset), append(sizes, len(body))
		return nil
	})
	if err != nil || len(offsets) != 2 || offsets[1] != 8 || sizes[0] != 16 || sizes[1] != 20 {
		t.Errorf("offsets %v, sizes %v, %v", offsets, sizes, err)
	}
	if eachMessage(records[:len(records)-1], func(int64, []byte) error { return nil }) == nil {
		t.Error("a torn record was read")
	}
}

func TestAMessageThatComesTwiceCountsOnce(t *testing.T) {
	inbox := newInbox(2)
	for _, number := range []byte{0, 1, 1} {
		if err := inbox.take([]byte{0, 0, 0, 0, 0, 0, 0, number}); err != nil {
			t.Fatal(err)
		}
	}
	if inbox.distinct != 2 || inbox.doubled != 1 {
		t.Errorf("%d distinct, %d doubled", inbox.distinct, inbox.doubled)
	}
	if inbox.take([]byte{0, 0, 0, 0, 0, 0, 0, 2}) == nil {
		t.Error("a message that nobody sent was taken")
	}
}

func TestQuantiles(t *testing.T) {
	var waits latencies
	for ms := 100; ms >= 1; ms-- {
		waits.add(time.Duration(ms) * time.Millisecond)
	}
	if waits.quantileMs(0.5) != 50 || waits.quantileMs(0.99) != 99 || latencies(nil).quantileMs(0.5) != 0 {
		t.Errorf("%v %v", waits.quantileMs(0.5), waits.quantileMs(0.99))
	}
}

func TestThreeSecondsAreSteadyWhereTheyDifferByLessThanATwentieth(t *testing.T) {
	for _, each := range []struct {
		perS     []float64
		isSteady bool
	}{
		{[]float64{100, 100}, false},
		{[]float64{10, 96, 100, 98}, true},
		{[]float64{95, 100, 98}, false},
		{[]float64{100, 100, 100, 90}, false},
		{[]float64{0, 0, 0}, false},
	} {
		if isSteady(each.perS) != each.isSteady {
			t.Errorf("%v", each)
		}
	}
}

func TestTheFloorAppendsAllThatItAcknowledges(t *testing.T) {
	for _, isSynced := range []bool{false, true} {
		for _, isHalf := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "log")
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go serveFloor(listener, path, isSynced)
			for round := 0; round < 2; round++ { // the second one begins with the messages of the first one
				sent, err := sendForAWhile(listener.Addr().String(), "topic", isHalf, 8, 100, 20*time.Millisecond, 50*time.Millisecond)
				if err != nil || sent.Errors > 0 || sent.Taken == 0 || sent.Taken != sent.Visible {
					t.Fatalf("%+v, %v", sent, err)
				}
			}
			listener.Close()
			log, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			head := make([]byte, 1000)
			if _, err := log.Read(head); err != nil || !bytes.Contains(head, []byte("benchmark-producers")) {
				t.Errorf("the log begins with %q, %v", head, err)
			}
		}
	}
}

func TestAWarmUpEndsAtItsMaximum(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go serveFloor(listener, filepath.Join(t.TempDir(), "log"), false)
	warm, err := untilSteady(listener.Addr().String(), "topic", true, 8, 100, time.Second, time.Second)
	if err != nil || warm.Seconds != 1 || warm.IsSteady || warm.PerS == 0 {
		t.Errorf("%+v, %v", warm, err)
	}
}
