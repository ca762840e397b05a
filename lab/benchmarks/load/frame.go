package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A frame of RocketMQ's remoting protocol, with a header in the serializer ROCKETMQ:
//
//	LENGTH 4 | SERIALIZETYPE 1 | HEADERLENGTH 3 | header | body
//	header: CODE 2 | LANGUAGE 1 | VERSION 2 | OPAQUE 4 | FLAG 4 | REMARKLENGTH 4 | remark | EXTLENGTH 4 | extension fields
//	extension field: NAMELENGTH 2 | name | VALUELENGTH 4 | value
//
// All numbers are big-endian. LENGTH counts what follows it.
const (
	opaqueAt     = 13 // where OPAQUE begins in a frame
	fieldsAt     = 29 // where the extension fields begin in a frame without a remark
	languageGo   = 9
	version497   = 407 // the ordinal of V4_9_7 in RocketMQ's MQVersion
	binaryHeader = 1   // SerializeType.ROCKETMQ
	responseFlag = 1
	onewayFlag   = 2
	longestFrame = 32 << 20
)

// Request and response codes (RocketMQ's RequestCode and ResponseCode).
const (
	pullMessage           = 11
	updateAndCreateTopic  = 17
	getMaxOffset          = 30
	heartBeat             = 34
	endTransaction        = 37
	checkTransactionState = 39
	sendMessageV2         = 310
	sendBatchMessage      = 320

	success              = 0
	notSupported         = 3
	pullNotFound         = 19
	pullRetryImmediately = 20
)

type field struct{ name, value string }

// appendRequest appends the frame of a request.
func appendRequest(out []byte, code int, flag int, opaque int32, body []byte, fields ...field) []byte {
	begin := len(out)
	out = append(out, 0, 0, 0, 0, binaryHeader, 0, 0, 0)
	out = binary.BigEndian.AppendUint16(out, uint16(code))
	out = append(out, languageGo)
	out = binary.BigEndian.AppendUint16(out, version497)
	out = binary.BigEndian.AppendUint32(out, uint32(opaque))
	out = binary.BigEndian.AppendUint32(out, uint32(flag))
	out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, each := range fields {
		out = binary.BigEndian.AppendUint16(out, uint16(len(each.name)))
		out = append(out, each.name...)
		out = binary.BigEndian.AppendUint32(out, uint32(len(each.value)))
		out = append(out, each.value...)
	}
	binary.BigEndian.PutUint32(out[begin+fieldsAt-4:], uint32(len(out)-begin-fieldsAt))
	headerLength := len(out) - begin - 8
	out[begin+5], out[begin+6], out[begin+7] = byte(headerLength>>16), byte(headerLength>>8), byte(headerLength)
	out = append(out, body...)
	binary.BigEndian.PutUint32(out[begin:], uint32(len(out)-begin-4))
	return out
}

// A frame that a broker sent. Its slices are valid until the next frame is read.
type frame struct {
	code       int
	opaque     int32
	isResponse bool
	remark     []byte
	fields     []byte // extension fields in binary, or nil
	json       map[string]string
	body       []byte
}

// value is the text of an extension field; nil where the header does not have it.
func (f *frame) value(name string) []byte {
	if f.json != nil {
		return []byte(f.json[name])
	}
	for rest := f.fields; len(rest) >= 6; {
		nameEnd := 2 + int(binary.BigEndian.Uint16(rest))
		if len(rest) < nameEnd+4 {
			return nil
		}
		valueEnd := nameEnd + 4 + int(binary.BigEndian.Uint32(rest[nameEnd:]))
		if len(rest) < valueEnd {
			return nil
		}
		if string(rest[2:nameEnd]) == name {
			return rest[nameEnd+4 : valueEnd]
		}
		rest = rest[valueEnd:]
	}
	return nil
}

// number is the value of an extension field that holds a decimal number.
func (f *frame) number(name string) (int64, error) {
	number, err := strconv.ParseInt(string(f.value(name)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("a frame with code %d has no number %s: %q", f.code, name, f.value(name))
	}
	return number, nil
}

// commitLogOffset is what an offset message id says: 8 hexadecimal digits of address, 8 of port, 16 of offset.
func commitLogOffset(msgID []byte) (int64, error) {
	if len(msgID) != 32 {
		return 0, fmt.Errorf("the offset message id %q does not have 32 digits", msgID)
	}
	var offset [8]byte
	if _, err := hex.Decode(offset[:], msgID[16:]); err != nil {
		return 0, fmt.Errorf("the offset message id %q: %w", msgID, err)
	}
	return int64(binary.BigEndian.Uint64(offset[:])), nil
}

// readFrame reads a frame into the buffer, which it returns grown where it was too small.
func readFrame(from io.Reader, buffer []byte) (frame, []byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return frame{}, buffer, err
	}
	size := int(binary.BigEndian.Uint32(length[:]))
	if size < 4 || size > longestFrame {
		return frame{}, buffer, fmt.Errorf("a frame says that it has %d bytes", size)
	}
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	if _, err := io.ReadFull(from, buffer); err != nil {
		return frame{}, buffer, err
	}
	headerEnd := 4 + int(binary.BigEndian.Uint32(buffer)&0xffffff)
	if headerEnd > size {
		return frame{}, buffer, errors.New("a frame's header is longer than the frame")
	}
	read, err := decodeHeader(buffer[0], buffer[4:headerEnd])
	read.body = buffer[headerEnd:]
	return read, buffer, err
}

func decodeHeader(serializeType byte, header []byte) (frame, error) {
	if serializeType != binaryHeader {
		return decodeJSON(header)
	}
	const remarkAt = 17
	if len(header) < remarkAt+4 {
		return frame{}, errors.New("a binary header is too short")
	}
	remarkEnd := remarkAt + int(binary.BigEndian.Uint32(header[remarkAt-4:]))
	if remarkEnd < remarkAt || remarkEnd+4 > len(header) {
		return frame{}, errors.New("a binary header ends within its remark")
	}
	return frame{
		code:       int(binary.BigEndian.Uint16(header)),
		opaque:     int32(binary.BigEndian.Uint32(header[5:])),
		isResponse: binary.BigEndian.Uint32(header[9:])&responseFlag != 0,
		remark:     header[remarkAt:remarkEnd],
		fields:     header[remarkEnd+4:],
	}, nil
}

// decodeJSON reads the headers of requests that a broker sends: Apache's writes them in JSON.
func decodeJSON(header []byte) (frame, error) {
	var read struct {
		Code, Opaque, Flag int
		Remark             string
		ExtFields          map[string]string
	}
	if err := json.NewDecoder(bytes.NewReader(header)).Decode(&read); err != nil {
		return frame{}, fmt.Errorf("a header is no JSON: %w", err)
	}
	if read.ExtFields == nil {
		read.ExtFields = map[string]string{}
	}
	return frame{
		code:       read.Code,
		opaque:     int32(read.Opaque),
		isResponse: read.Flag&responseFlag != 0,
		remark:     []byte(read.Remark),
		json:       read.ExtFields,
	}, nil
}
