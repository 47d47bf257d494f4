package responses

import (
	"bytes"
	"testing"
)

// FuzzDecode: what encode wrote is read back, and anything else is refused or is such a document.
func FuzzDecode(f *testing.F) {
	f.Add(encode(Response{}))
	f.Add(encode(Response{Object: []byte(`{"id":"resp_1"}`), Earlier: bytes.Repeat([]byte("x"), 300), Input: []byte("{}")}))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte("\x02a"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		r, whole := decode(doc)
		if !whole {
			return
		}
		again, whole := decode(encode(r))
		if !whole || !bytes.Equal(again.Object, r.Object) || !bytes.Equal(again.Earlier, r.Earlier) || !bytes.Equal(again.Input, r.Input) {
			t.Errorf("%q is read as %+v, and that as %+v", doc, r, again)
		}
	})
}
