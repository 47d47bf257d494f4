package payloads_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"modelrelay/providers/secret"
	"modelrelay/workflows/payloads"
)

// keyOf is a key whose secret is 32 times the letter.
func keyOf(id string, letter byte) payloads.Key {
	return payloads.Key{ID: id, Secret: secret.Text(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{letter}, 32)))}
}

func newCodec(tb testing.TB, keys ...payloads.Key) (*payloads.Codec, *payloads.Keys) {
	tb.Helper()
	list, err := payloads.NewKeys(keys)
	if err != nil {
		tb.Fatal(err)
	}
	codec, err := payloads.NewCodec(list)
	if err != nil {
		tb.Fatal(err)
	}
	return codec, list
}

func payload(text string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain")}, Data: []byte(text)}
}

func encode(tb testing.TB, codec *payloads.Codec, p *commonpb.Payload) *commonpb.Payload {
	tb.Helper()
	out, err := codec.Encode([]*commonpb.Payload{p})
	if err != nil || len(out) != 1 {
		tb.Fatalf("%d payloads, %v", len(out), err)
	}
	return out[0]
}

// TestRoundTrip: what is encrypted shows nothing of its text, and comes back whole, compressed or not.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t, keyOf("a", 'a'))
	for name, text := range map[string]string{
		"empty": "", "short": "a prompt", "at the threshold": strings.Repeat("prompt ", 145), "long": strings.Repeat("prompt ", 50_000),
		"beyond what is compressed": strings.Repeat("p", 5<<20),
	} {
		in := payload(text)
		sealed := encode(t, codec, in)
		if bytes.Contains(sealed.GetData(), []byte("prompt")) || bytes.Contains(sealed.GetData(), []byte("json/plain")) {
			t.Errorf("%s: the text can be read", name)
		}
		if name == "long" && len(sealed.GetData()) > len(text)/10 {
			t.Errorf("%s: %d bytes of %d", name, len(sealed.GetData()), len(text))
		}
		if again := encode(t, codec, sealed); again != sealed {
			t.Errorf("%s: encrypted twice", name)
		}
		out, err := codec.Decode([]*commonpb.Payload{sealed})
		if err != nil || !proto.Equal(out[0], in) {
			t.Errorf("%s: %v", name, err)
		}
	}
	one, other := encode(t, codec, payload("same")), encode(t, codec, payload("same"))
	if bytes.Equal(one.GetData(), other.GetData()) {
		t.Error("the same text is encrypted to the same bytes")
	}
}

// TestRotation: the first key writes, all read, and a key that went is named.
func TestRotation(t *testing.T) {
	t.Parallel()
	codec, keys := newCodec(t, keyOf("old", 'a'))
	before := encode(t, codec, payload("before"))
	if err := keys.Load([]payloads.Key{keyOf("new", 'b'), keyOf("old", 'a')}); err != nil {
		t.Fatal(err)
	}
	after := encode(t, codec, payload("after"))
	out, err := codec.Decode([]*commonpb.Payload{before, after, payload("clear")})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"before", "after", "clear"} {
		if got := string(out[i].GetData()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := keys.Load([]payloads.Key{keyOf("old", 'a')}); err != nil {
		t.Fatal(err)
	}
	_, err = codec.Decode([]*commonpb.Payload{after})
	if unknown := (*payloads.UnknownKeyError)(nil); !errors.As(err, &unknown) || unknown.ID != "new" {
		t.Errorf("got %v", err)
	}
	if err := keys.Load(nil); err != nil {
		t.Fatal(err)
	}
	if p := payload("clear"); encode(t, codec, p) != p {
		t.Error("encrypted without a key")
	}
}

// TestDamaged: bytes that were changed, another key of the same name, and what would grow without end are errors.
func TestDamaged(t *testing.T) {
	t.Parallel()
	codec, keys := newCodec(t, keyOf("a", 'a'))
	whole := encode(t, codec, payload("whole"))
	damage := func(change func(p *commonpb.Payload)) *commonpb.Payload {
		p := proto.CloneOf(whole)
		change(p)
		return p
	}
	cases := map[string]*commonpb.Payload{
		"a byte":    damage(func(p *commonpb.Payload) { p.Data[len(p.Data)-1] ^= 1 }),
		"the nonce": damage(func(p *commonpb.Payload) { p.Data[0] ^= 1 }),
		"cut off":   damage(func(p *commonpb.Payload) { p.Data = p.Data[:5] }),
		"empty":     damage(func(p *commonpb.Payload) { p.Data = nil }),
		"a bomb":    bomb(t, 'a', 1<<30),
	}
	for name, p := range cases {
		if _, err := codec.Decode([]*commonpb.Payload{p}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := keys.Load([]payloads.Key{keyOf("a", 'b')}); err != nil {
		t.Fatal(err)
	}
	if _, err := codec.Decode([]*commonpb.Payload{whole}); err == nil {
		t.Error("another key of the same name: no error")
	}
}

// bomb returns a payload of a few kilobytes that would decompress to size. Only a process with the key can make one.
func bomb(t *testing.T, letter byte, size int64) *commonpb.Payload {
	t.Helper()
	var packed bytes.Buffer
	packed.WriteByte(1)
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for chunk := make([]byte, 1<<20); size > 0; size -= int64(len(chunk)) {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	block, err := aes.NewCipher(bytes.Repeat([]byte{letter}, 32))
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, aead.NonceSize())
	return &commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("binary/relay-aes-256-gcm"), "encryption-key-id": {letter}},
		Data:     aead.Seal(nonce, nonce, packed.Bytes(), []byte{letter}),
	}
}

func TestKeysThatAreNone(t *testing.T) {
	t.Parallel()
	good := keyOf("good", 'g')
	for name, list := range map[string][]payloads.Key{
		"no id":           {{Secret: good.Secret}},
		"a space":         {{ID: "a b", Secret: good.Secret}},
		"a long id":       {{ID: strings.Repeat("a", 33), Secret: good.Secret}},
		"no key":          {{ID: "a"}},
		"no base64":       {{ID: "a", Secret: "this is no base64!"}},
		"too short a key": {{ID: "a", Secret: secret.Text(base64.StdEncoding.EncodeToString(make([]byte, 16)))}},
	} {
		if _, err := payloads.NewKeys(list); err == nil {
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), good.Secret.Reveal()) || strings.Contains(err.Error(), "this is no") {
			t.Errorf("%s: the error holds the key", name)
		}
	}
	_, keys := newCodec(t, good)
	if keys.Load([]payloads.Key{{ID: "a"}}) == nil {
		t.Error("a wrong list was loaded")
	}
	if codec, err := payloads.NewCodec(keys); err != nil || encode(t, codec, payload("x")).GetMetadata()["encryption-key-id"] == nil {
		t.Errorf("a wrong list took the good one away: %v", err)
	}
}

// TestDecodeJSON: the form of Temporal's remote codec, where one payload that cannot be read hides no other.
func TestDecodeJSON(t *testing.T) {
	t.Parallel()
	codec, keys := newCodec(t, keyOf("old", 'a'))
	gone := encode(t, codec, payload("gone"))
	if err := keys.Load([]payloads.Key{keyOf("new", 'b')}); err != nil {
		t.Fatal(err)
	}
	type one struct {
		Metadata map[string][]byte `json:"metadata"`
		Data     []byte            `json:"data"`
	}
	var asked, got struct {
		Payloads []one `json:"payloads"`
	}
	for _, p := range []*commonpb.Payload{encode(t, codec, payload(`"a prompt"`)), gone, payload(`"clear"`)} {
		asked.Payloads = append(asked.Payloads, one{p.GetMetadata(), p.GetData()})
	}
	body, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := codec.DecodeJSON(body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answer, &got); err != nil || len(got.Payloads) != 3 {
		t.Fatalf("%s, %v", answer, err)
	}
	if string(got.Payloads[0].Data) != `"a prompt"` || string(got.Payloads[0].Metadata["encoding"]) != "json/plain" ||
		!bytes.Equal(got.Payloads[1].Data, gone.GetData()) || string(got.Payloads[2].Data) != `"clear"` {
		t.Errorf("got %s", answer)
	}
	for _, bad := range []string{"", "{", `{"payloads": 1}`, `[]`} {
		if _, err := codec.DecodeJSON([]byte(bad)); !errors.Is(err, payloads.ErrNoPayloads) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// FuzzDecode: Decode returns without a panic, whatever the history contains.
func FuzzDecode(f *testing.F) {
	codec, _ := newCodec(f, keyOf("a", 'a'))
	f.Add([]byte("binary/relay-aes-256-gcm"), []byte("a"), []byte("0123456789012345678901234567890"))
	f.Add([]byte("binary/relay-aes-256-gcm"), []byte("a"), encode(f, codec, payload("x")).GetData())
	f.Fuzz(func(_ *testing.T, encoding, id, data []byte) {
		_, _ = codec.Decode([]*commonpb.Payload{{Metadata: map[string][]byte{"encoding": encoding, "encryption-key-id": id}, Data: data}})
	})
}

// BenchmarkEncode measures the encryption of one task's request.
func BenchmarkEncode(b *testing.B) {
	codec, _ := newCodec(b, keyOf("a", 'a'))
	for name, size := range map[string]int{"256 B": 256, "4 KiB": 4 << 10, "64 KiB": 64 << 10} {
		p := payload(strings.Repeat("a prompt of a few words, ", size/25))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				encode(b, codec, p)
			}
		})
	}
}
