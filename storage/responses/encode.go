package responses

import "encoding/binary"

// encode writes a response without its Items: each part after its length.
func encode(r Response) []byte {
	parts := [...][]byte{r.Object, r.Earlier, r.Input}
	doc := make([]byte, 0, len(parts)*binary.MaxVarintLen32+len(r.Object)+len(r.Earlier)+len(r.Input))
	for _, part := range parts {
		doc = append(binary.AppendUvarint(doc, uint64(len(part))), part...)
	}
	return doc
}

// decode reads what encode wrote. It is false for anything else.
func decode(doc []byte) (r Response, whole bool) {
	for _, part := range [...]*[]byte{&r.Object, &r.Earlier, &r.Input} {
		length, n := binary.Uvarint(doc)
		if n <= 0 || length > uint64(len(doc)-n) {
			return Response{}, false
		}
		doc = doc[n:]
		*part, doc = doc[:length:length], doc[length:]
	}
	return r, len(doc) == 0
}
