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

	"modelrelay/activities"
	"modelrelay/providers"
)

const (
	// idBytes bytes are 26 characters of base32, which follow the kind's prefix in a task id.
	idBytes = 16
	// incarnationLetters distinguish incarnations that begin in the same millisecond.
	incarnationLetters = 6
	// inlineLimit is the largest size of a request in a workflow history, in bytes.
	inlineLimit = 64 << 10
	// nesting is the additional depth of a request in histories, memos and answers, whose decoders have a limit of depth.
	nesting = 8
)

// private matches what must not be in histories: an address with a query string or user information, and media in a data URL.
var private = regexp.MustCompile(`(?i)//[^\s"]*[?@]|data:[^\s",]*;base64,`)

func prefixes() []string {
	return []string{activities.VideoIDs, activities.CallIDs, activities.ResponseIDs}
}

func randomID(prefix string) string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + encodeID(b[:])
}

// keyedID returns the id of the task that a token creates with an idempotency key. It is the same for every repeat.
func keyedID(prefix, tokenID, key string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s:%s", len(tokenID), tokenID, key)))
	return prefix + encodeID(sum[:idBytes])
}

// newIncarnation distinguishes tasks with the same id. It starts with the time of the create.
func newIncarnation(at time.Time) string {
	return strconv.FormatInt(at.UnixMilli(), 36) + strings.ToLower(rand.Text()[:incarnationLetters])
}

func encodeID(b []byte) string {
	return strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// IsTaskID reports whether the text has the form of a task id. Other texts never reach Temporal.
func IsTaskID(s string) bool {
	kind, rest, ok := strings.Cut(s, "_")
	return ok && slices.Contains(prefixes(), kind+"_") && len(rest) == 26 && strings.Trim(rest, "0123456789abcdefghijklmnopqrstuv") == ""
}

// requestHash identifies a canonical request, with the digests of its media. The order of keys in its objects does not matter.
func requestHash(req providers.VideoRequest) (string, error) {
	req.IdempotencyKey, req.Source = "", nil
	req.Inputs = append([]providers.Media(nil), req.Inputs...)
	for i := range req.Inputs {
		req.Inputs[i].Object = ""                   // the location of the bytes is not part of the request
		if from := req.Inputs[i].From; from != "" { // nor are the bytes: a repeat may come after their removal
			req.Inputs[i] = providers.Media{Role: req.Inputs[i].Role, From: from}
		}
	}
	doc, err := canonical(req)
	if err != nil {
		return "", err
	}
	return digest(doc), nil
}

// canonical marshals a request in a unique form. Its objects must be in order: see ordered.
func canonical(req providers.VideoRequest) ([]byte, error) {
	doc, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("marshal request: %w", err)
	}
	return doc, nil
}

// ordered sorts the objects of a request by key. A create does this once, since it is slow for large objects.
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

// sortedObject returns a JSON object with sorted keys and unchanged numbers.
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

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// inline reports whether a canonical request may be in a workflow history.
func inline(doc []byte) bool { return len(doc) <= inlineLimit && !private.Match(doc) }

func tooDeep(doc []byte) bool {
	wrapped := slices.Concat(bytes.Repeat([]byte("["), nesting), doc, bytes.Repeat([]byte("]"), nesting))
	return !json.Valid(wrapped)
}
