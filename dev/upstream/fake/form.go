package fake

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
	Values map[string][]string
	files  []FormFile
}

// FormFile is a part of a form that has a file name.
type FormFile struct {
	field, Name, ContentType string
	Data                     []byte // valid until the call ends
}

// Value returns the first value of a field, or nothing.
func (f *form) Value(name string) string {
	if v := f.Values[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// File returns the first file in one of the fields, or nil.
func (f *form) File(names ...string) *FormFile {
	for i := range f.files {
		if slices.Contains(names, f.files[i].field) {
			return &f.files[i]
		}
	}
	return nil
}

// ParseForm reads the body as multipart/form-data.
func ParseForm(x *Exchange) (*form, *Problem) {
	f, err := readForm(x.HTTP.Header.Get("Content-Type"), x.Body)
	if err != nil {
		return nil, &Problem{
			Status: http.StatusBadRequest, Kind: Invalid,
			Message: "Could not parse multipart form: " + err.Error(),
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
	f := &form{Values: map[string][]string{}}
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
			f.files = append(f.files, FormFile{part.FormName(), part.FileName(), part.Header.Get("Content-Type"), data})
		default:
			f.Values[part.FormName()] = append(f.Values[part.FormName()], string(data))
		}
	}
}
