package payloads

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// What an encrypted payload says of itself. These words stand in histories and never change.
const (
	metaEncoding = "encoding"
	metaKey      = "encryption-key-id"
	encrypted    = "binary/relay-aes-256-gcm"
)

// The first byte of what is encrypted tells how the rest is written.
const (
	plain      = 0
	compressed = 1
)

const (
	// compressAbove is the length, in bytes, above which a payload is compressed: shorter ones gain little.
	compressAbove = 1 << 10
	// longest bounds a payload in the clear, in bytes. Temporal takes 2 MiB each, so that nothing longer was ever sent, and
	// what would grow longer when it is decompressed was made by somebody else.
	longest = 4 << 20
)

var errDamaged = errors.New("an encrypted payload is damaged, or its key is another one of the same name")

// Codec encrypts and decrypts payloads. It is safe for concurrent use, and Temporal's PayloadCodec.
//
// Zstandard compresses because it is faster than the standard library's gzip at a better ratio, refuses by itself what grows
// beyond a bound, and the program has the package already, for its S3 client.
type Codec struct {
	keys   *Keys
	packer *zstd.Encoder
	opener *zstd.Decoder
}

// NewCodec makes a Codec of the keys, which may change.
func NewCodec(keys *Keys) (*Codec, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("make the compressor: %w", err)
	}
	// DecodeAll takes its memory as it goes, up to the bound; what a frame promises counts for nothing.
	opener, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(longest), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("make the decompressor: %w", err)
	}
	return &Codec{keys: keys, packer: packer, opener: opener}, nil
}

// Encode encrypts payloads with the first key; without one, and those that are encrypted, it returns as they are.
func (c *Codec) Encode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	key, ok := c.keys.writer()
	if !ok {
		return list, nil
	}
	done := make([]*commonpb.Payload, len(list))
	for i, p := range list {
		if isEncrypted(p) {
			done[i] = p
			continue
		}
		var err error
		if done[i], err = c.encrypt(key, p); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// Decode decrypts payloads, and returns those that are not encrypted as they are. Its error is an *UnknownKeyError for a key that
// is not in the list.
func (c *Codec) Decode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	done := make([]*commonpb.Payload, len(list))
	for i, p := range list {
		if !isEncrypted(p) {
			done[i] = p
			continue
		}
		var err error
		if done[i], err = c.decrypt(p); err != nil {
			return nil, err
		}
	}
	return done, nil
}

func isEncrypted(p *commonpb.Payload) bool { return string(p.GetMetadata()[metaEncoding]) == encrypted }

func (c *Codec) encrypt(key opened, p *commonpb.Payload) (*commonpb.Payload, error) {
	text, err := proto.MarshalOptions{}.MarshalAppend([]byte{plain}, p)
	if err != nil {
		return nil, fmt.Errorf("write a payload: %w", err)
	}
	if len(text) > compressAbove && len(text) <= longest {
		if packed := c.packer.EncodeAll(text[1:], []byte{compressed}); len(packed) < len(text) {
			text = packed
		}
	}
	// A nonce of its own for each payload, in front of it. Random ones suffice for four billion payloads a key.
	nonce := make([]byte, key.aead.NonceSize(), key.aead.NonceSize()+len(text)+key.aead.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return &commonpb.Payload{
		Metadata: map[string][]byte{metaEncoding: []byte(encrypted), metaKey: []byte(key.id)},
		Data:     key.aead.Seal(nonce, nonce, text, []byte(key.id)),
	}, nil
}

func (c *Codec) decrypt(p *commonpb.Payload) (*commonpb.Payload, error) {
	key, err := c.keys.reader(string(p.GetMetadata()[metaKey]))
	if err != nil {
		return nil, err
	}
	data := p.GetData()
	if len(data) < key.aead.NonceSize() {
		return nil, errDamaged
	}
	text, err := key.aead.Open(nil, data[:key.aead.NonceSize()], data[key.aead.NonceSize():], []byte(key.id))
	if err != nil || len(text) == 0 {
		return nil, errDamaged
	}
	body := text[1:]
	switch text[0] {
	case plain:
	case compressed:
		if body, err = c.opener.DecodeAll(body, nil); err != nil {
			return nil, fmt.Errorf("decompress a payload: %w", err)
		}
	default:
		return nil, errors.New("an encrypted payload is of a newer version")
	}
	clear := new(commonpb.Payload)
	if err := proto.Unmarshal(body, clear); err != nil {
		return nil, fmt.Errorf("read a payload: %w", err)
	}
	return clear, nil
}

// mostShown bounds what one answer of DecodeJSON holds in the clear, in bytes: many small payloads may each grow to the
// largest.
const mostShown = 16 << 20

// ErrNoPayloads is a request of DecodeJSON that holds no payloads.
var ErrNoPayloads = errors.New("wants Temporal's payloads in JSON")

// DecodeJSON decrypts payloads for Temporal's UI and CLI, in the form of their remote codec: {"payloads": [{"metadata": …,
// "data": …}]}, with bytes in base64. What is not encrypted comes back as it is, and so does what cannot be decrypted: one such
// payload must not hide the others of a page.
func (c *Codec) DecodeJSON(body []byte) ([]byte, error) {
	var in commonpb.Payloads
	if err := protojson.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPayloads, err)
	}
	shown := 0
	for i, p := range in.GetPayloads() {
		if shown > mostShown {
			break
		}
		if clear, err := c.Decode([]*commonpb.Payload{p}); err == nil {
			in.Payloads[i] = clear[0]
			shown += len(clear[0].GetData())
		}
	}
	out, err := protojson.Marshal(&in)
	if err != nil {
		return nil, fmt.Errorf("write payloads: %w", err)
	}
	return out, nil
}
