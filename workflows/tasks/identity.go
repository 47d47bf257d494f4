package tasks

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
)

const (
	// idPrefix and the 26 characters after it make a task id; clients see it as it is.
	idPrefix = "video_"
	// idBytes make 26 characters of base32.
	idBytes = 16
	// generationLetters tell apart the generations that begin within a millisecond.
	generationLetters = 6
	// inlineLimit is the size in bytes up to which a request may travel in a workflow history.
	inlineLimit = 64 << 10
	// nesting is how much deeper a request lies in histories, memos and answers than in its own document. Beyond their
	// own bound decoders refuse a document, and so would every reader of an accepted task.
	nesting = 8
)

// private finds what stays out of histories: an address with a query string or a user, which may be a credential, and a
// medium in a data URL.
var private = regexp.MustCompile(`(?i)//[^\s"]*[?@]|data:[^\s",]*;base64,`)

// randomID is the id of a task created without an idempotency key.
func randomID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return idPrefix + encodeID(b[:])
}

// keyedID is the id of the task that a token creates with an idempotency key: the same for every repeat.
func keyedID(tokenID, key string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s:%s", len(tokenID), tokenID, key)))
	return idPrefix + encodeID(sum[:idBytes])
}

// newGeneration tells a task from any other that has the same id, before it or at the same time; it begins with when it was made.
func newGeneration(at time.Time) string {
	return strconv.FormatInt(at.UnixMilli(), 36) + strings.ToLower(rand.Text()[:generationLetters])
}

func encodeID(b []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// NamesTask tells whether the text begins as task ids do, so that it can be no other service's.
func NamesTask(s string) bool { return strings.HasPrefix(s, idPrefix) }

// IsTaskID tells whether the text has a task id's form, so that strangers' paths do not reach Temporal.
func IsTaskID(s string) bool {
	rest, ok := strings.CutPrefix(s, idPrefix)
	if !ok || len(rest) != 26 {
		return false
	}
	return strings.Trim(rest, "0123456789abcdefghijklmnopqrstuv") == ""
}

// requestHash tells two requests apart: the canonical request with the digests of its media in place of their bytes.
// Objects inside it are compared by value, whatever the order of their keys.
func requestHash(req providers.VideoRequest) (string, error) {
	req.IdempotencyKey, req.Source = "", nil
	req.Inputs = append([]providers.Media(nil), req.Inputs...)
	for i := range req.Inputs {
		req.Inputs[i].Object = ""                   // where the bytes lie says nothing about them
		if from := req.Inputs[i].From; from != "" { // nor are they needed: a repeat may come when they are gone
			req.Inputs[i] = providers.Media{Role: req.Inputs[i].Role, From: from}
		}
	}
	doc, err := canonical(req)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(doc)
	return hex.EncodeToString(sum[:]), nil
}

// canonical writes a request in one way, however its writer spaced and escaped it. Its objects are in order already: see
// ordered.
func canonical(req providers.VideoRequest) ([]byte, error) {
	doc, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("marshal request: %w", err)
	}
	return doc, nil
}

// ordered puts the objects of a request into order, which takes long where they are large: once for each create.
func ordered(req providers.VideoRequest) (providers.VideoRequest, error) {
	var err error
	if req.Extra, err = sortedObject(req.Extra); err != nil {
		return req, fmt.Errorf("vendor parameters: %w", err)
	}
	if req.Metadata, err = sortedObject(req.Metadata); err != nil {
		return req, fmt.Errorf("metadata: %w", err)
	}
	return req, nil
}

// sortedObject writes a JSON object with its keys in order and its numbers as they were.
func sortedObject(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// digest is the SHA-256 of an upload, in hexadecimal digits.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// inline tells whether a request, in its canonical form, may travel in a workflow history.
func inline(doc []byte) bool { return len(doc) <= inlineLimit && !private.Match(doc) }

// tooDeep tells whether a document can be read on its own but not where it will lie.
func tooDeep(doc []byte) bool {
	wrapped := slices.Concat(bytes.Repeat([]byte("["), nesting), doc, bytes.Repeat([]byte("]"), nesting))
	return !json.Valid(wrapped)
}
