package videos

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gabriel-vasile/mimetype"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// The bounds of the inputs of one create. Options.MaxBody bounds the whole body.
const (
	// maxInputs bounds the inputs of a request before its model is known. The vendor's table has the bound of a model, 50 at most.
	maxInputs = 64
	// maxImageBytes bounds one decoded image. The vendors' own bounds are between 5 and 20 MB.
	maxImageBytes = 32 << 20
	// maxAddress bounds the URL of an input in bytes. No vendor fetches a longer one.
	maxAddress = 8 << 10
)

// newUpload returns an input of uploaded bytes. Its type is detected, whatever the client declares; the vendor decides what it accepts.
func newUpload(role providers.InputRole, param, name string, data []byte) (providers.Media, error) {
	if len(data) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	kind, _, _ := strings.Cut(mimetype.Detect(data).String(), ";")
	if kind == "application/ogg" && role == providers.SourceAudio {
		kind = "audio/ogg"
	}
	var fits bool
	var expected string
	switch role {
	case providers.SourceVideo, providers.ExtendVideo:
		fits, expected = strings.HasPrefix(kind, "video/"), "a video"
	case providers.SourceAudio:
		fits, expected = strings.HasPrefix(kind, "audio/"), "sound"
	default:
		expected = "a PNG, JPEG, WebP, GIF, BMP, TIFF or HEIC image" // at least one vendor accepts each
		fits = slices.Contains([]string{
			"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff", "image/heic", "image/heif",
		}, kind)
		if len(data) > maxImageBytes {
			return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is larger than %d MiB.", param, maxImageBytes>>20)
		}
	}
	if !fits {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be %s.", param, expected)
	}
	return providers.Media{Role: role, Name: name, ContentType: kind, Size: int64(len(data)), Data: data}, nil
}

// newMedia returns the input in a text: a data URL or Base64 is an upload, and a URL is never fetched. It does not retain text.
func newMedia(role providers.InputRole, param string, text []byte) (providers.Media, error) {
	if len(text) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	const scheme = "data:"
	if len(text) >= len(scheme) && strings.EqualFold(string(text[:len(scheme)]), scheme) {
		return decodeDataURL(role, param, text[len(scheme):])
	}
	if bytes.IndexByte(text, ':') < 0 { // no character of Base64, and every URL has one
		return decodeBase64(role, param, text)
	}
	if len(text) > maxAddress {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is too long for a URL.", param)
	}
	address := string(text)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be an http, https or data URL, or Base64.", param)
	}
	return providers.Media{Role: role, URL: address}, nil
}

func newImage(param string, text []byte) (providers.Media, error) {
	return newMedia(providers.FirstFrame, param, text)
}

func newLink(param string, text []byte) (providers.Media, error) {
	media, err := newImage(param, text)
	if err == nil && media.URL == "" {
		err = providers.InvalidField(param, "Invalid request: '%s' must be an http or https URL.", param)
	}
	return media, err
}

// decodeDataURL decodes what follows "data:". Only base64 is supported.
func decodeDataURL(role providers.InputRole, param string, rest []byte) (providers.Media, error) {
	head, encoded, found := bytes.Cut(rest, []byte(","))
	if !found || !bytes.HasSuffix(head, []byte(";base64")) {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be a base64 data URL.", param)
	}
	return decodeBase64(role, param, encoded)
}

// decodeBase64 decodes an input in either alphabet, with or without padding, and ignores line breaks.
func decodeBase64(role providers.InputRole, param string, encoded []byte) (providers.Media, error) {
	encoding := base64.StdEncoding
	if bytes.ContainsAny(encoded, "-_") {
		encoding = base64.URLEncoding
	}
	encoded = bytes.TrimRight(encoded, "= \r\n")
	encoding = encoding.WithPadding(base64.NoPadding)
	data := make([]byte, encoding.DecodedLen(len(encoded)))
	n, err := encoding.Decode(data, encoded)
	if err != nil {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is not valid base64.", param)
	}
	return newUpload(role, param, "", data[:n])
}

func addInput(req *providers.VideoRequest, param string, input providers.Media) error {
	if len(req.Inputs) == maxInputs {
		return providers.InvalidField(param, "Invalid request: '%s' exceeds the limit of %d inputs.", param, maxInputs)
	}
	req.Inputs = append(req.Inputs, input)
	return nil
}

// addInputs reads a checked array of strings; each is an input.
func addInputs(req *providers.VideoRequest, param string, array rawjson.Value, read func(string, []byte) (providers.Media, error)) error {
	for i, text := range array.Items() {
		place := param + "[" + strconv.Itoa(i) + "]"
		input, err := read(place, text.Text().Decoded())
		if err != nil {
			return err
		}
		if err := addInput(req, place, input); err != nil {
			return err
		}
	}
	return nil
}

// imageReference is an image's URL, bare or in an object, or an array of such.
type imageReference struct{}

// Schema implements huma.SchemaProvider.
func (imageReference) Schema(huma.Registry) *huma.Schema {
	one := []*huma.Schema{
		body.Described("The image's http, https or data URL, or its bytes in Base64: PNG, JPEG or WebP, and other kinds where the model takes them, 32 MiB at most"),
		{
			Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
				"image_url": body.Described("The image's http, https or data URL, or its bytes in Base64"), "file_id": body.Described("Not supported here"),
			},
		},
	}
	return &huma.Schema{OneOf: append(one, &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{OneOf: slices.Clone(one)}, Description: "Several images; input_reference_role has their roles",
	})}
}

// addReferences reads an input_reference that is not a file: a URL, bare or as {"image_url": URL}, or an array of these.
func addReferences(req *providers.VideoRequest, raw rawjson.Value) error {
	if raw.IsArray() {
		for _, reference := range raw.Items() {
			if err := addReferences(req, reference); err != nil {
				return err
			}
		}
		return nil
	}
	image, err := readReference(raw)
	if err != nil {
		return err
	}
	return addInput(req, "input_reference", image)
}

func readReference(raw rawjson.Value) (providers.Media, error) {
	if raw.IsText() {
		return newImage("input_reference", raw.Text().Decoded())
	}
	return referenceOf(func(name string) []byte { return raw.Get(name).Text().Decoded() })
}

func referenceOf(member func(name string) []byte) (providers.Media, error) {
	if address := member("image_url"); len(address) > 0 {
		return newImage("input_reference.image_url", address)
	}
	if len(member("file_id")) > 0 {
		return providers.Media{}, providers.InvalidField("input_reference.file_id",
			"Invalid request: 'input_reference.file_id' is not supported here; send the image itself or its URL.")
	}
	return providers.Media{}, providers.InvalidField("input_reference",
		"Invalid request: 'input_reference' must be an image file or an 'image_url'.")
}
