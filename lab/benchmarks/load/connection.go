package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// patience is how long a broker may take for an answer. A broker that holds a pull answers it after 15 s.
const patience = 60 * time.Second

const bufferBytes = 1 << 18

// A connection to a broker. One goroutine reads it; frames that arrived together are answered by one write.
type connection struct {
	socket net.Conn
	reader *bufio.Reader
	buffer []byte
}

func connect(address string) (*connection, error) {
	socket, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		return nil, err
	}
	return &connection{socket: socket, reader: bufio.NewReaderSize(socket, bufferBytes)}, nil
}

func (c *connection) close() { c.socket.Close() }

func (c *connection) write(frames []byte) error {
	if len(frames) == 0 {
		return nil
	}
	if err := c.socket.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.socket.Write(frames)
	return err
}

func (c *connection) read() (frame, error) {
	read, buffer, err := readFrame(c.reader, c.buffer)
	c.buffer = buffer
	return read, err
}

// exchange writes the requests, then gives each frame that comes to `handle`, which appends what to write next.
// It returns when `isOver` says so after a frame.
func (c *connection) exchange(requests []byte, handle func(*frame, []byte) ([]byte, error), isOver func() bool) error {
	out := requests
	for {
		if err := c.write(out); err != nil {
			return fmt.Errorf("the broker does not take requests: %w", err)
		}
		if isOver() {
			return nil
		}
		out = out[:0]
		if err := c.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		for {
			read, err := c.read()
			if err != nil {
				return fmt.Errorf("the broker does not answer: %w", err)
			}
			if out, err = handle(&read, out); err != nil {
				return err
			}
			if !c.hasFrame() {
				break
			}
		}
	}
}

// hasFrame says whether the next frame can be read without waiting.
func (c *connection) hasFrame() bool {
	if c.reader.Buffered() < 4 {
		return false
	}
	length, err := c.reader.Peek(4)
	return err == nil && c.reader.Buffered() >= 4+int(binary.BigEndian.Uint32(length))
}

// ask sends one request and waits for its answer. It fails if the answer is not SUCCESS.
func (c *connection) ask(code int, body []byte, fields ...field) (frame, error) {
	if err := c.write(appendRequest(nil, code, 0, 1, body, fields...)); err != nil {
		return frame{}, err
	}
	if err := c.socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return frame{}, err
	}
	answer, err := c.read()
	if err == nil && answer.code != success {
		err = refused(&answer)
	}
	return answer, err
}

func refused(answer *frame) error {
	return fmt.Errorf("the broker answered code %d: %s", answer.code, answer.remark)
}
