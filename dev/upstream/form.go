package upstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
)

// form is a multipart body, read strictly: every part named, the closing boundary there.
type form struct {
	values map[string][]string
	files  []formFile
}

type formFile struct {
	field, name, contentType string
	data                     []byte // valid until the call ends
}

func (f *form) value(name string) string {
	if v := f.values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (f *form) file(names ...string) *formFile {
	for i := range f.files {
		if slices.Contains(names, f.files[i].field) {
			return &f.files[i]
		}
	}
	return nil
}

// parseForm reads the body as multipart/form-data.
func parseForm(x *exchange) (*form, *problem) {
	f, err := readForm(x.r.Header.Get("Content-Type"), x.body)
	if err != nil {
		return nil, &problem{
			status: http.StatusBadRequest, kind: kindInvalid,
			message: "Could not parse multipart form: " + err.Error(),
		}
	}
	return f, nil
}

func readForm(contentType string, body []byte) (*form, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return nil, err
	}
	if kind != "multipart/form-data" || params["boundary"] == "" {
		return nil, fmt.Errorf("content type %q with a boundary is needed", "multipart/form-data")
	}
	f := &form{values: map[string][]string{}}
	parts := multipart.NewReader(bytes.NewReader(body), params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(part)
		switch {
		case err != nil:
			return nil, err
		case part.FormName() == "":
			return nil, errors.New("a part has no name")
		case part.FileName() != "":
			f.files = append(f.files, formFile{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), data})
		default:
			f.values[part.FormName()] = append(f.values[part.FormName()], string(data))
		}
	}
}
