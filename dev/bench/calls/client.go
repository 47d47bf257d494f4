package calls

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"modelrelay/dev/bench/stage"
)

// connection is one client. It sends prepared requests, one at a time, and does little but system calls, because it shares
// the machine with the process that it measures.
type connection struct {
	conn   net.Conn
	reader *bufio.Reader
	stop   func() bool
}

// dial connects to an address. The end of ctx cuts the connection. The caller closes it.
func dial(ctx context.Context, addr string) (*connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &connection{conn, bufio.NewReader(conn), context.AfterFunc(ctx, func() { _ = conn.Close() })}, nil
}

// dialAll opens n connections.
func dialAll(ctx context.Context, addr string, n int) ([]*connection, error) {
	all := make([]*connection, 0, n)
	for range n {
		c, err := dial(ctx, addr)
		if err != nil {
			closeAll(all)
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func closeAll(all []*connection) {
	for _, c := range all {
		c.close()
	}
}

func (c *connection) close() {
	c.stop()
	_ = c.conn.Close() // no call is in progress
}

// send writes a request and returns the answer with its header read. The body must be read to its end before the next.
func (c *connection) send(request []byte) (*http.Response, error) {
	if err := c.patience(); err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return response, nil
}

// patience restarts the time limit of the answer.
func (c *connection) patience() error { return c.conn.SetDeadline(time.Now().Add(stage.AnswerTimeout)) }

// call sends a request and reads the whole answer into buf, which it returns grown. An answer other than 200 is an error.
func (c *connection) call(request []byte, buf *bytes.Buffer) error {
	response, err := c.send(request)
	if err != nil {
		return err
	}
	buf.Reset()
	_, err = buf.ReadFrom(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("read the answer: %w", err)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("answered %s: %.300s", response.Status, buf)
	}
	return response.Body.Close()
}

// post makes the request of a chat with a JSON body.
func post(to target, body []byte) []byte {
	var b bytes.Buffer
	for _, part := range []string{
		"POST ", to.prefix, to.chatPath(), " HTTP/1.1\r\nHost: ", to.addr,
		"\r\nUser-Agent: bench\r\nAccept: application/json\r\nAuthorization: Bearer ",
		to.key, to.version(), "\r\nContent-Type: application/json\r\nContent-Length: ", strconv.Itoa(len(body)), "\r\n\r\n",
	} {
		b.WriteString(part)
	}
	b.Write(body)
	return b.Bytes()
}
