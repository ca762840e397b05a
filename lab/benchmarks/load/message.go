package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand"
	"strconv"
	"strings"
	"time"
)

// The transaction bits of a sysFlag (RocketMQ's MessageSysFlag).
const (
	transactionNot      = 0
	transactionPrepared = 4
	transactionCommit   = 8
)

// A body begins with the message's number and the time at which it was sent, 8 bytes each, as nanoseconds of `clock`.
const bodyHead = 16

// endOpaque is the opaque of every END_TRANSACTION, and of no other request. It is one-way, but Apache's broker answers one that it
// drops because it waited too long (BrokerFastFailure).
const endOpaque = 1 << 30

const (
	uniqueKeyDigits = 32
	bornPlaceholder = "0000000000000"
)

// startedAt is where the clock of this process begins. It does not jump as the time of day may.
var startedAt = time.Now()

func clock() int64 { return int64(time.Since(startedAt)) }

// A template is the frame of a SEND_MESSAGE_V2 in which only a few bytes change from message to message.
type template struct {
	frame                             []byte
	queueAt, bornAt, uniqueAt, bodyAt int
}

// newTemplate makes a frame as Apache's Java client sends it: with a tag and a unique key, and half messages with their group.
func newTemplate(topicName string, isHalf bool, bodySize int) *template {
	sysFlag := transactionNot
	uniqueKey := strings.Repeat("0", uniqueKeyDigits)
	properties := "UNIQ_KEY\x01" + uniqueKey + "\x02WAIT\x01true\x02TAGS\x01benchmark"
	if isHalf {
		sysFlag = transactionPrepared
		properties = "TRAN_MSG\x01true\x02" + properties + "\x02PGROUP\x01" + producerGroup
	}
	frame := appendRequest(nil, sendMessageV2, 0, 0, randomBody(bodySize),
		field{"a", producerGroup}, field{"b", topicName}, field{"c", "TBW102"}, field{"d", strconv.Itoa(queues)}, field{"e", "0"},
		field{"f", strconv.Itoa(sysFlag)}, field{"g", bornPlaceholder}, field{"h", "0"}, field{"i", properties},
		field{"j", "0"}, field{"k", "false"}, field{"m", "false"}, field{"n", brokerName})
	return &template{
		frame:    frame,
		queueAt:  bytes.Index(frame, []byte("\x00\x01e\x00\x00\x00\x010")) + 7,
		bornAt:   bytes.Index(frame, []byte(bornPlaceholder)),
		uniqueAt: bytes.Index(frame, []byte("UNIQ_KEY\x01")) + len("UNIQ_KEY\x01") + uniqueKeyDigits - 16,
		bodyAt:   len(frame) - bodySize,
	}
}

// append appends the frame of the message with that number.
func (t *template) append(out []byte, opaque int32, number int64) []byte {
	binary.BigEndian.PutUint32(t.frame[opaqueAt:], uint32(opaque))
	t.frame[t.queueAt] = '0' + byte(number%queues)
	strconv.AppendInt(t.frame[t.bornAt:t.bornAt], time.Now().UnixMilli(), 10)
	putHex(t.frame[t.uniqueAt:t.uniqueAt+16], uint64(number))
	binary.BigEndian.PutUint64(t.frame[t.bodyAt:], uint64(number))
	binary.BigEndian.PutUint64(t.frame[t.bodyAt+8:], uint64(clock()))
	return append(out, t.frame...)
}

// appendCommit appends the COMMIT, one-way, of the half message with that number, which was answered so.
func appendCommit(out []byte, number int64, answer *frame) ([]byte, error) {
	offset, err := commitLogOffset(answer.value("msgId"))
	if err != nil {
		return out, err
	}
	var uniqueKey [uniqueKeyDigits]byte
	copy(uniqueKey[:], "0000000000000000")
	putHex(uniqueKey[16:], uint64(number))
	return appendEnd(out, string(uniqueKey[:]), strconv.FormatInt(offset, 10), string(answer.value("queueOffset")), "false"), nil
}

// appendEnd appends an END_TRANSACTION that commits.
func appendEnd(out []byte, uniqueKey, commitLogOffset, queueOffset, fromCheck string) []byte {
	return appendRequest(out, endTransaction, onewayFlag, endOpaque, nil,
		field{"producerGroup", producerGroup}, field{"tranStateTableOffset", queueOffset},
		field{"commitLogOffset", commitLogOffset}, field{"commitOrRollback", strconv.Itoa(transactionCommit)},
		field{"fromTransactionCheck", fromCheck}, field{"msgId", uniqueKey}, field{"bname", brokerName})
}

// appendBatch appends a SEND_BATCH_MESSAGE of messages with the numbers from `first` on, into one queue. In its body each message is
//
//	TOTALSIZE 4 | MAGICCODE 4 | BODYCRC 4 | FLAG 4 | BODYLENGTH 4 | body | PROPERTIESLENGTH 2 | properties
func appendBatch(out []byte, opaque int32, topicName string, queue int, first, count int64, body []byte) []byte {
	const head, propertiesSize = 20, len("UNIQ_KEY\x01") + uniqueKeyDigits + len("\x02WAIT\x01true")
	size := head + len(body) + 2 + propertiesSize
	batch := make([]byte, 0, int(count)*size)
	for number := first; number < first+count; number++ {
		batch = binary.BigEndian.AppendUint32(batch, uint32(size))
		batch = append(batch, make([]byte, 12)...)
		batch = binary.BigEndian.AppendUint32(batch, uint32(len(body)))
		binary.BigEndian.PutUint64(body, uint64(number))
		batch = append(batch, body...)
		batch = binary.BigEndian.AppendUint16(batch, uint16(propertiesSize))
		batch = append(batch, "UNIQ_KEY\x010000000000000000"...)
		batch = append(batch, make([]byte, 16)...)
		putHex(batch[len(batch)-16:], uint64(number))
		batch = append(batch, "\x02WAIT\x01true"...)
	}
	return appendRequest(out, sendBatchMessage, 0, opaque, batch,
		field{"a", producerGroup}, field{"b", topicName}, field{"c", "TBW102"}, field{"d", strconv.Itoa(queues)},
		field{"e", strconv.Itoa(queue)}, field{"f", "0"}, field{"g", strconv.FormatInt(time.Now().UnixMilli(), 10)}, field{"h", "0"},
		field{"i", "WAIT\x01true"}, field{"j", "0"}, field{"k", "false"}, field{"m", "true"}, field{"n", brokerName})
}

// eachMessage calls `take` with the queue offset and the body of each record of a pull's answer. A record begins with
//
//	TOTALSIZE 4 | MAGICCODE 4 | BODYCRC 4 | QUEUEID 4 | FLAG 4 | QUEUEOFFSET 8 | PHYSICALOFFSET 8 | SYSFLAG 4 | BORNTIMESTAMP 8
//	| BORNHOST 8 or 20 | STORETIMESTAMP 8 | STOREHOST 8 or 20 | RECONSUMETIMES 4 | PREPAREDTRANSACTIONOFFSET 8 | BODYLENGTH 4 | body
func eachMessage(records []byte, take func(queueOffset int64, body []byte) error) error {
	const sysFlagAt, bornHostV6, storeHostV6, longer = 36, 0x10, 0x20, 12
	for len(records) > 0 {
		bodyAt := 88
		if len(records) < bodyAt {
			return errors.New("a pulled record is too short")
		}
		size := int(binary.BigEndian.Uint32(records))
		sysFlag := binary.BigEndian.Uint32(records[sysFlagAt:])
		if sysFlag&bornHostV6 != 0 {
			bodyAt += longer
		}
		if sysFlag&storeHostV6 != 0 {
			bodyAt += longer
		}
		if size < bodyAt+bodyHead || size > len(records) {
			return errors.New("a pulled record is torn")
		}
		bodyEnd := bodyAt + int(binary.BigEndian.Uint32(records[bodyAt-4:]))
		if bodyEnd < bodyAt+bodyHead || bodyEnd > size {
			return errors.New("the body of a pulled record is torn")
		}
		if err := take(int64(binary.BigEndian.Uint64(records[20:])), records[bodyAt:bodyEnd]); err != nil {
			return err
		}
		records = records[size:]
	}
	return nil
}

func putHex(out []byte, number uint64) {
	const digits = "0123456789ABCDEF"
	for at := len(out) - 1; at >= 0; at-- {
		out[at] = digits[number&15]
		number >>= 4
	}
}

// randomBody is a body that does not compress; each run has the same.
func randomBody(size int) []byte {
	body := make([]byte, size)
	rand.New(rand.NewSource(1)).Read(body)
	return body
}
