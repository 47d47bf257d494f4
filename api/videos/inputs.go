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

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Bounds of the inputs of one video create. The whole body is bounded by Options.MaxBody besides.
const (
	// maxInputs bounds the inputs of a request whose model is not known yet. What a model takes, its vendor's table says: 50 at most.
	maxInputs = 64
	// maxImageBytes is that of one image, decoded. The vendors stop between 5 and 20 MB; this leaves it to them.
	maxImageBytes = 32 << 20
	// maxAddress is the length of an input's URL in bytes; what is longer is no address a vendor would fetch.
	maxAddress = 8 << 10
)

// newUpload makes an input of uploaded bytes. Its content type is read from the bytes, whatever the client says. Which
// types a model takes is its vendor's to say.
func newUpload(role providers.InputRole, param, name string, data []byte) (providers.Media, error) {
	if len(data) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	kind, _, _ := strings.Cut(mimetype.Detect(data).String(), ";")
	if kind == "application/ogg" && role == providers.SourceAudio {
		kind = "audio/ogg"
	}
	var fits bool
	var wanted string
	switch role {
	case providers.SourceVideo, providers.ExtendVideo:
		fits, wanted = strings.HasPrefix(kind, "video/"), "a video"
	case providers.SourceAudio:
		fits, wanted = strings.HasPrefix(kind, "audio/"), "sound"
	default:
		fits, wanted = slices.Contains(imageTypes(), kind), "a PNG, JPEG, WebP, GIF, BMP, TIFF or HEIC image"
		if len(data) > maxImageBytes {
			return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is larger than %d MiB.", param, maxImageBytes>>20)
		}
	}
	if !fits {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be %s.", param, wanted)
	}
	return providers.Media{Role: role, Name: name, ContentType: kind, Size: int64(len(data)), Data: data}, nil
}

// imageTypes are the images that some vendor takes.
func imageTypes() []string {
	return []string{"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff", "image/heic", "image/heif"}
}

// newMedia makes an input of text: a data URL or bare Base64 is an upload, an http or https URL is passed on and never
// fetched. text is not kept.
func newMedia(role providers.InputRole, param string, text []byte) (providers.Media, error) {
	if len(text) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	if rest, ok := cutPrefixFold(text, "data:"); ok {
		return decodeDataURL(role, param, rest)
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

// newImage makes an input of an image that the video begins with.
func newImage(param string, text []byte) (providers.Media, error) {
	return newMedia(providers.FirstFrame, param, text)
}

// newLink makes an input of an image's http or https URL.
func newLink(param string, text []byte) (providers.Media, error) {
	media, err := newImage(param, text)
	if err == nil && media.URL == "" {
		err = providers.InvalidField(param, "Invalid request: '%s' must be an http or https URL.", param)
	}
	return media, err
}

// decodeDataURL reads what follows "data:". The contract's images are base64.
func decodeDataURL(role providers.InputRole, param string, rest []byte) (providers.Media, error) {
	head, encoded, found := bytes.Cut(rest, []byte(","))
	if !found || !bytes.HasSuffix(head, []byte(";base64")) {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be a base64 data URL.", param)
	}
	return decodeBase64(role, param, encoded)
}

// decodeBase64 reads an input in either alphabet, with or without padding; line breaks do not count.
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

func cutPrefixFold(text []byte, prefix string) ([]byte, bool) {
	if len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix) {
		return text[len(prefix):], true
	}
	return text, false
}

// addInput gives a request one more input.
func addInput(req *providers.VideoRequest, param string, input providers.Media) error {
	if len(req.Inputs) == maxInputs {
		return providers.InvalidField(param, "Invalid request: '%s' is one input too many, %d are allowed.", param, maxInputs)
	}
	req.Inputs = append(req.Inputs, input)
	return nil
}

// addInputs reads a checked array of strings, each an input.
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
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	one := []*huma.Schema{
		text("The image's http, https or data URL, or its bytes in Base64: PNG, JPEG or WebP, and other kinds where the model takes them, 32 MiB at most"),
		{
			Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
				"image_url": text("The image's http, https or data URL, or its bytes in Base64"), "file_id": text("Not supported here"),
			},
		},
	}
	return &huma.Schema{OneOf: append(one, &huma.Schema{
		Type: huma.TypeArray, Items: &huma.Schema{OneOf: slices.Clone(one)}, Description: "Several images; input_reference_role says what each is for",
	})}
}

// addReferences reads an input_reference that is not a file: a URL, bare or as {"image_url": URL}, or an array of such.
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

// referenceOf reads an input_reference by its members.
func referenceOf(member func(name string) []byte) (providers.Media, error) {
	if address := member("image_url"); len(address) > 0 {
		return newImage("input_reference.image_url", address)
	}
	if len(member("file_id")) > 0 {
		return providers.Media{}, providers.InvalidField("input_reference.file_id",
			"Invalid request: 'input_reference.file_id' is not supported here; send the image itself or its URL.")
	}
	return providers.Media{}, providers.InvalidField("input_reference",
		"Invalid request: 'input_reference' must hold an image file or an 'image_url'.")
}
