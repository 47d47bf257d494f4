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

// The metadata and encoding of an encrypted payload. Histories contain them, so they never change.
const (
	metaEncoding = "encoding"
	metaKey      = "encryption-key-id"
	encrypted    = "binary/relay-aes-256-gcm"
)

// The first byte of the encrypted text names the form of the rest.
const (
	plain      = 0
	compressed = 1
)

const (
	// compressAbove is the length, in bytes, above which a payload is compressed: shorter ones gain little.
	compressAbove = 1 << 10
	// longest bounds a decrypted payload, in bytes. Temporal accepts 2 MiB, so a longer decompressed payload is not one of ours.
	longest = 4 << 20
)

var errDamaged = errors.New("an encrypted payload is damaged, or was encrypted with another key of the same id")

// Codec encrypts and decrypts payloads. It implements Temporal's PayloadCodec and is safe for concurrent use.
//
// It compresses with Zstandard, which bounds the decompressed size and is a dependency of the S3 client.
type Codec struct {
	keys   *Keys
	packer *zstd.Encoder
	opener *zstd.Decoder
}

// NewCodec returns a Codec of the keys, which may change while it is in use.
func NewCodec(keys *Keys) (*Codec, error) {
	packer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("create the compressor: %w", err)
	}
	// DecodeAll allocates as it decompresses, up to the bound. It ignores the size that a frame declares.
	opener, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(longest), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("create the decompressor: %w", err)
	}
	return &Codec{keys: keys, packer: packer, opener: opener}, nil
}

// Encode encrypts payloads with the first key. It returns encrypted payloads unchanged, and all of them if there is no key.
func (c *Codec) Encode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	key, ok := c.keys.writer()
	if !ok {
		return list, nil
	}
	return replaced(list, func(p *commonpb.Payload) (*commonpb.Payload, error) {
		if isEncrypted(p) {
			return p, nil
		}
		return c.encrypt(key, p)
	})
}

// Decode decrypts payloads and returns unencrypted ones unchanged. For a key that is not in the list it returns an *UnknownKeyError.
func (c *Codec) Decode(list []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return replaced(list, c.decrypt)
}

func replaced(list []*commonpb.Payload, by func(*commonpb.Payload) (*commonpb.Payload, error)) (_ []*commonpb.Payload, err error) {
	done := make([]*commonpb.Payload, len(list))
	for i, p := range list {
		if done[i], err = by(p); err != nil {
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
	// Each payload has its own nonce, before the text. Random ones suffice for four billion payloads a key.
	nonce := make([]byte, key.aead.NonceSize(), key.aead.NonceSize()+len(text)+key.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return &commonpb.Payload{
		Metadata: map[string][]byte{metaEncoding: []byte(encrypted), metaKey: []byte(key.id)},
		Data:     key.aead.Seal(nonce, nonce, text, []byte(key.id)),
	}, nil
}

func (c *Codec) decrypt(p *commonpb.Payload) (*commonpb.Payload, error) {
	if !isEncrypted(p) {
		return p, nil
	}
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
		return nil, errors.New("an encrypted payload is of a newer version of this program")
	}
	clear := new(commonpb.Payload)
	if err := proto.Unmarshal(body, clear); err != nil {
		return nil, fmt.Errorf("read a payload: %w", err)
	}
	return clear, nil
}

// mostShown bounds the decrypted bytes in one answer of DecodeJSON: many small payloads may each decompress to the longest.
const mostShown = 16 << 20

// ErrNoPayloads reports a request of DecodeJSON without payloads.
var ErrNoPayloads = errors.New("the body must be Temporal's payloads in JSON")

// DecodeJSON decrypts payloads for Temporal's UI and CLI, in the form of their remote codec: {"payloads": [{"metadata": …, "data": …}]},
// with bytes in base64. It returns a payload unchanged if it is not encrypted or cannot be decrypted, so the others of a page are shown.
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
		if clear, err := c.decrypt(p); err == nil {
			in.Payloads[i] = clear
			shown += len(clear.GetData())
		}
	}
	out, err := protojson.Marshal(&in)
	if err != nil {
		return nil, fmt.Errorf("write payloads: %w", err)
	}
	return out, nil
}
