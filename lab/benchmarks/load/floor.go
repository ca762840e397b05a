package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

// sparseBytes is the size of the floor's file from its start, so that an append does not change the size, as in a commit log.
const sparseBytes = 1 << 40

// A floor does the least that a broker must do for transactions and sends: it appends each frame to one file and responds. With
// -sync a response waits until its frame is on the disk, and what arrives during a sync shares the next one. A floor has no
// queues, index, checks or pulls, and does not read its file.
type floor struct {
	file     *os.File
	isSynced bool
	appended atomic.Int64 // bytes
	visible  atomic.Int64 // sends and commits
}

// A floorBatch is what arrived together: the frames to append, the responses to send after that, and the messages that then count.
type floorBatch struct {
	frames, responses []byte
	visible           int64
}

func listenAsFloor(address, path string, isSynced bool) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return serveFloor(listener, path, isSynced)
}

// serveFloor accepts connections until the listener is closed.
func serveFloor(listener net.Listener, path string, isSynced bool) error {
	flags := os.O_CREATE | os.O_TRUNC | os.O_WRONLY
	if isSynced {
		flags |= syscall.O_DSYNC
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	if err := file.Truncate(sparseBytes); err != nil {
		return err
	}
	served := &floor{file: file, isSynced: isSynced}
	for {
		socket, err := listener.Accept()
		if err != nil {
			return err
		}
		go served.serve(&connection{socket: socket, reader: bufio.NewReaderSize(socket, bufferBytes)})
	}
}

// serve reads a connection until it ends. A write that syncs has a goroutine of its own, so that reading goes on meanwhile.
func (f *floor) serve(c *connection) {
	defer c.close()
	waiting := make(chan floorBatch, bufferBytes)
	defer close(waiting)
	if f.isSynced {
		go f.appendAll(c, waiting)
	}
	var batch floorBatch
	for {
		request, err := c.read()
		if err != nil {
			return // the load is over
		}
		f.handle(&batch, &request, c.buffer)
		if c.hasFrame() {
			continue
		}
		if f.isSynced {
			waiting <- batch
			batch = floorBatch{}
			continue
		}
		f.append(c, &batch)
		batch = floorBatch{frames: batch.frames[:0], responses: batch.responses[:0]}
	}
}

func (f *floor) handle(batch *floorBatch, request *frame, raw []byte) {
	respond := func(code int, fields ...field) {
		batch.responses = appendRequest(batch.responses, code, responseFlag, request.opaque, nil, fields...)
	}
	switch request.code {
	case updateAndCreateTopic:
		respond(success)
	case getMaxOffset: // one queue has all messages
		offset := int64(0)
		if string(request.value("queueId")) == "0" {
			offset = f.visible.Load()
		}
		respond(success, field{"offset", strconv.FormatInt(offset, 10)})
	case sendMessageV2:
		batch.frames = append(batch.frames, raw...)
		offset := f.appended.Add(int64(len(raw))) - int64(len(raw))
		if string(request.value("f")) != strconv.Itoa(transactionPrepared) {
			batch.visible++
		}
		var id [32]byte
		putHex(id[:], uint64(offset))
		respond(success, field{"msgId", string(id[:])}, field{"queueId", "0"}, field{"queueOffset", "0"})
	case endTransaction:
		batch.frames = append(batch.frames, raw...)
		f.appended.Add(int64(len(raw)))
		batch.visible++
	default:
		respond(notSupported)
	}
}

// appendAll appends batches as they come. All that wait are one write, and one sync.
func (f *floor) appendAll(c *connection, waiting <-chan floorBatch) {
	for batch := range waiting {
		for len(waiting) > 0 {
			next := <-waiting
			batch.frames = append(batch.frames, next.frames...)
			batch.responses = append(batch.responses, next.responses...)
			batch.visible += next.visible
		}
		f.append(c, &batch)
	}
}

func (f *floor) append(c *connection, batch *floorBatch) {
	if len(batch.frames) > 0 {
		if _, err := f.file.Write(batch.frames); err != nil {
			fmt.Fprintln(os.Stderr, "load: the floor cannot append:", err)
			os.Exit(1)
		}
	}
	f.visible.Add(batch.visible)
	_ = c.write(batch.responses) // a client that went away needs no response
}
