package videos

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// Bounds of the images of one video create. The whole body is bounded by Options.MaxBody besides.
const (
	// maxImages is more than any vendor takes.
	maxImages = 16
	// maxImageBytes is that of one image, decoded. The vendors stop between 5 and 20 MB; this leaves it to them.
	maxImageBytes = 32 << 20
	// maxAddress is the length of an image's URL in bytes; what is longer is no address a vendor would fetch.
	maxAddress = 8 << 10
)

// newUpload makes an input of uploaded bytes. Its content type is read from the bytes, whatever the client says: PNG,
// JPEG and WebP, which are what the vendors take. A GIF or anything else would be refused there, after minutes in a
// queue.
func newUpload(param, name string, data []byte) (providers.Media, error) {
	if len(data) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	if len(data) > maxImageBytes {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is larger than %d MiB.", param, maxImageBytes>>20)
	}
	kind := http.DetectContentType(data)
	switch kind {
	case "image/png", "image/jpeg", "image/webp":
		return providers.Media{Name: name, ContentType: kind, Size: int64(len(data)), Data: data}, nil
	default:
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be a PNG, JPEG or WebP image.", param)
	}
}

// newMedia makes an input of an image in text: a data URL or bare Base64 is an upload, an http or https URL is passed on
// and never fetched. text is not kept.
func newMedia(param string, text []byte) (providers.Media, error) {
	if len(text) == 0 {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is empty.", param)
	}
	if rest, ok := cutPrefixFold(text, "data:"); ok {
		return decodeDataURL(param, rest)
	}
	if bytes.IndexByte(text, ':') < 0 { // no character of Base64, and every URL has one
		return decodeBase64(param, text)
	}
	if len(text) > maxAddress {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' is too long for a URL.", param)
	}
	address := string(text)
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be an http, https or data URL, or Base64.", param)
	}
	return providers.Media{URL: address}, nil
}

// newLink makes an input of an image's http or https URL.
func newLink(param string, text []byte) (providers.Media, error) {
	media, err := newMedia(param, text)
	if err == nil && media.URL == "" {
		err = providers.InvalidField(param, "Invalid request: '%s' must be an http or https URL.", param)
	}
	return media, err
}

// decodeDataURL reads what follows "data:". The contract's images are base64.
func decodeDataURL(param string, rest []byte) (providers.Media, error) {
	head, encoded, found := bytes.Cut(rest, []byte(","))
	if !found || !bytes.HasSuffix(head, []byte(";base64")) {
		return providers.Media{}, providers.InvalidField(param, "Invalid request: '%s' must be a base64 data URL.", param)
	}
	return decodeBase64(param, encoded)
}

// decodeBase64 reads an image in either alphabet, with or without padding; line breaks do not count.
func decodeBase64(param string, encoded []byte) (providers.Media, error) {
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
	return newUpload(param, "", data[:n])
}

func cutPrefixFold(text []byte, prefix string) ([]byte, bool) {
	if len(text) >= len(prefix) && strings.EqualFold(string(text[:len(prefix)]), prefix) {
		return text[len(prefix):], true
	}
	return text, false
}

// addImage gives a request one more image.
func addImage(req *providers.VideoRequest, param string, image providers.Media) error {
	if len(req.Images) == maxImages {
		return providers.InvalidField(param, "Invalid request: '%s' is one image too many, %d are allowed.", param, maxImages)
	}
	req.Images = append(req.Images, image)
	return nil
}

// addImages reads a checked array of strings, each an image.
func addImages(req *providers.VideoRequest, param string, array []byte, read func(string, []byte) (providers.Media, error)) error {
	i := 0
	for at := range body.Items(array) {
		place := param + "[" + strconv.Itoa(i) + "]"
		i++
		image, err := read(place, body.Unquote(array[at.From:at.To]))
		if err != nil {
			return err
		}
		if err := addImage(req, place, image); err != nil {
			return err
		}
	}
	return nil
}

// imageReference is an image's URL, bare or in an object.
type imageReference struct{}

// Schema implements huma.SchemaProvider.
func (imageReference) Schema(huma.Registry) *huma.Schema {
	text := func(description string) *huma.Schema {
		return &huma.Schema{Type: huma.TypeString, Description: description}
	}
	return &huma.Schema{OneOf: []*huma.Schema{
		text("The image's http, https or data URL, or its bytes in Base64: PNG, JPEG or WebP, 32 MiB at most"),
		{
			Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
				"image_url": text("The same, in an object"), "file_id": text("Not supported here"),
			},
		},
	}}
}

// readReference reads an input_reference that is not a file: a URL, bare or as {"image_url": URL}.
func readReference(raw []byte) (providers.Media, error) {
	if raw[0] == '"' {
		return newMedia("input_reference", body.Unquote(raw))
	}
	return referenceOf(func(name string) []byte {
		at := body.Member(raw, name)
		return body.Unquote(raw[at.From:at.To])
	})
}

// referenceOf reads an input_reference by its members.
func referenceOf(member func(name string) []byte) (providers.Media, error) {
	if address := member("image_url"); len(address) > 0 {
		return newMedia("input_reference.image_url", address)
	}
	if len(member("file_id")) > 0 {
		return providers.Media{}, providers.InvalidField("input_reference.file_id",
			"Invalid request: 'input_reference.file_id' is not supported here; send the image itself or its URL.")
	}
	return providers.Media{}, providers.InvalidField("input_reference",
		"Invalid request: 'input_reference' must hold an image file or an 'image_url'.")
}
