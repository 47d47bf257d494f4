package script

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Turn is what was said last: the JSON of the messages, items, blocks or contents behind the model's last say, of any dialect.
type Turn []json.RawMessage

// Said returns the texts and results of the turn in order, joined by " | ".
func (t Turn) Said() string {
	var found []string
	t.walk(func(key, text string) {
		switch key {
		case "text", "content", "output", "response":
			found = append(found, text)
		}
	})
	return strings.Join(found, " | ")
}

// Media returns the media of the turn in order, joined by "; ": "image/png 4 bytes sha256 12ab34cd" (the first eight digits) or a link.
func (t Turn) Media() string {
	var found []string
	t.walk(func(key, text string) {
		if key == "media" {
			found = append(found, text)
		}
	})
	return strings.Join(found, "; ")
}

// Fill replaces what is in double braces.
func (t Turn) Fill(text string) string {
	if strings.Contains(text, "{{said}}") {
		text = strings.ReplaceAll(text, "{{said}}", t.Said())
	}
	if strings.Contains(text, "{{media}}") {
		text = strings.ReplaceAll(text, "{{media}}", t.Media())
	}
	return text
}

// walk shows every text under its key, and media as "media".
func (t Turn) walk(show func(key, text string)) {
	for _, raw := range t {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			walk("text", v, show)
		}
	}
}

func walk(key string, v any, show func(key, text string)) {
	switch v := v.(type) {
	case string:
		show(key, v)
	case []any:
		for _, item := range v {
			walk(key, item, show)
		}
	case map[string]any:
		if medium := mediumOf(v); medium != "" {
			show("media", medium)
			return
		}
		if response, ok := v["functionResponse"].(map[string]any); ok {
			b, err := json.Marshal(response["response"])
			if err == nil {
				show("response", string(b))
			}
			walk("parts", response["parts"], show)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(name, v[name], show)
		}
	}
}

// mediumOf describes an object that is a medium in one of the dialects; empty: it is none.
func mediumOf(v map[string]any) string {
	text := func(m map[string]any, key string) string { s, _ := m[key].(string); return s }
	object := func(key string) map[string]any { m, _ := v[key].(map[string]any); return m }
	switch {
	case v["type"] == "base64": // messages
		return inline(text(v, "media_type"), text(v, "data"))
	case v["type"] == "url":
		return text(v, "url")
	case object("inlineData") != nil: // gemini
		return inline(text(object("inlineData"), "mimeType"), text(object("inlineData"), "data"))
	case object("fileData") != nil:
		return text(object("fileData"), "fileUri")
	case object("image_url") != nil: // chat
		return link(text(object("image_url"), "url"))
	case object("file") != nil:
		return link(text(object("file"), "file_data"))
	case object("input_audio") != nil:
		return inline("audio/"+text(object("input_audio"), "format"), text(object("input_audio"), "data"))
	}
	for _, key := range []string{"image_url", "file_data", "file_url"} { // responses
		if s := text(v, key); s != "" {
			return link(s)
		}
	}
	return ""
}

// link describes a URL; one that carries its data, as inline data.
func link(url string) string {
	rest, ok := strings.CutPrefix(url, "data:")
	kind, data, comma := strings.Cut(rest, ",")
	if !ok || !comma {
		return url
	}
	return inline(strings.TrimSuffix(kind, ";base64"), data)
}

func inline(kind, data string) string {
	b, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return kind + " broken"
	}
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%s %d bytes sha256 %s", kind, len(b), hex.EncodeToString(sum[:4]))
}
