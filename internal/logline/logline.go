// Package logline writes log lines that come with every request: a Line is what slog.Logger.LogAttrs writes, byte for byte,
// put together without a record and its attributes where the logger's handler is one of this package's. Beside any other
// handler a Line calls that. It imports nothing of the product.
package logline

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// Handler is slog's JSON handler. It is safe for concurrent use.
type Handler struct {
	slog.Handler

	out *output
}

// output is a writer that lines of both kinds share.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// NewHandler writes JSON of the level and above to w.
func NewHandler(w io.Writer, level slog.Leveler) *Handler {
	out := &output{w: w}
	return &Handler{slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}), out}
}

// Line is one line on its way. One goroutine uses it, up to End.
type Line struct {
	log     *slog.Logger
	level   slog.Level
	message string

	out   *output     // nil: attrs are handed to the logger
	text  []byte      // of the line so far, where out is set
	attrs []slog.Attr // the others
}

// Pool keeps lines for the next ones. The zero value is ready.
type Pool struct{ lines sync.Pool }

// Begin begins a line, which must be ended. Whether the level is enabled is the caller's to ask.
func (p *Pool) Begin(log *slog.Logger, level slog.Level, message string) *Line {
	l, ok := p.lines.Get().(*Line)
	if !ok {
		l = new(Line)
	}
	l.log, l.level, l.message, l.out = log, level, message, nil
	h, own := log.Handler().(*Handler)
	if !own {
		return l
	}
	l.out = h.out
	l.text = time.Now().AppendFormat(append(l.text[:0], `{"time":"`...), time.RFC3339Nano)
	l.text = append(append(append(l.text, `","level":"`...), level.String()...), '"')
	return l.Text("msg", message)
}

// mostKept bounds the memory that a line keeps for the next, in bytes: the usual one has five hundred.
const mostKept = 4 << 10

// End writes the line.
func (p *Pool) End(ctx context.Context, l *Line) {
	if l.out == nil {
		l.log.LogAttrs(ctx, l.level, l.message, l.attrs...) //nolint:sloglint // the caller's constant, as Begin got it
		clear(l.attrs)
		l.attrs = l.attrs[:0]
	} else {
		l.text = append(l.text, "}\n"...)
		_, _ = l.out.Write(l.text) // slog has nobody to tell either
	}
	l.log, l.out = nil, nil
	if cap(l.text) <= mostKept {
		p.lines.Put(l)
	}
}

// name begins an attribute. Keys are words of the program, which need no escape.
func (l *Line) name(key string) { l.text = append(append(append(l.text, `,"`...), key...), `":`...) }

// Text adds a text.
func (l *Line) Text(key, value string) *Line {
	if l.out == nil {
		l.attrs = append(l.attrs, slog.String(key, value))
		return l
	}
	l.name(key)
	l.text = appendText(l.text, value)
	return l
}

// Int adds a whole number.
func (l *Line) Int(key string, value int64) *Line {
	if l.out == nil {
		l.attrs = append(l.attrs, slog.Int64(key, value))
		return l
	}
	l.name(key)
	l.text = strconv.AppendInt(l.text, value, 10)
	return l
}

// Milliseconds adds a duration as a number of milliseconds, to the microsecond.
func (l *Line) Milliseconds(key string, d time.Duration) *Line {
	value := float64(d.Microseconds()) / 1000
	if l.out == nil {
		l.attrs = append(l.attrs, slog.Float64(key, value))
		return l
	}
	l.name(key)
	l.text = strconv.AppendFloat(l.text, value, 'f', -1, 64)
	return l
}

// True adds a flag that is set.
func (l *Line) True(key string) *Line {
	if l.out == nil {
		l.attrs = append(l.attrs, slog.Bool(key, true))
		return l
	}
	l.name(key)
	l.text = append(l.text, "true"...)
	return l
}

// appendText writes a JSON string. It is slog's but for \b and \f, which are short here.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return appendEscaped(b, text)
		}
	}
	return append(append(append(b, '"'), text...), '"')
}

// appendEscaped is appendText for a text that is not all plain.
func appendEscaped(b []byte, text string) []byte {
	var escaped bytes.Buffer
	encoder := json.NewEncoder(&escaped)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string always encodes
	return append(b, bytes.TrimSuffix(escaped.Bytes(), []byte("\n"))...)
}
