package tasks

import (
	"bytes"
	"encoding/json"

	"modelrelay/api/edge"
)

// EventStream writes server-sent events and flushes each.
type EventStream struct {
	*edge.Writer
	buf bytes.Buffer
}

// Send writes one event with data on one line; name is "" for none.
func (e *EventStream) Send(id, name string, data any) error {
	e.buf.Reset()
	e.buf.WriteString("id: " + id + "\n")
	if name != "" {
		e.buf.WriteString("event: " + name + "\n")
	}
	e.buf.WriteString("data: ")
	encoder := json.NewEncoder(&e.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return err
	}
	e.buf.WriteByte('\n')
	return e.WriteEvent(e.buf.Bytes())
}

// WriteEvent writes one encoded event.
func (e *EventStream) WriteEvent(event []byte) error {
	if _, err := e.Write(event); err != nil {
		return edge.ClientGone(err)
	}
	if err := e.Flush(); err != nil {
		return edge.ClientGone(err)
	}
	return nil
}
