package api

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
)

// maxContainers bounds how many containers a call may name: each is looked up.
const maxContainers = 16

// madeBefore lists what earlier answers made and the call goes on from, the answer before it in front.
func madeBefore(operation providers.Operation, b *body) ([]providers.Made, error) {
	var goes []providers.Made
	add := func(id []byte, param string) bool {
		if len(id) > 0 {
			goes = append(goes, providers.Made{ID: string(id), Param: param})
		}
		return len(goes) <= maxContainers
	}
	switch operation {
	case providers.Responses, providers.CompactResponse:
		add(unquoted(b.value("previous_response_id")), "previous_response_id")
		seen := make(map[string]bool)
		for _, field := range [...]string{"tools", "input"} {
			ok := eachText(b.value(field), func(name, text []byte) bool {
				var room [64]byte
				switch string(appendFolded(room[:0], name)) {
				case "CONTAINER", "CONTAINER_ID": // an item of a code interpreter keeps its container in use
					if seen[string(text)] {
						return true
					}
					seen[string(text)] = true
					return add(text, field)
				}
				return true
			})
			if !ok {
				return nil, providers.InvalidField(field, "Invalid request: '%s' names more than %d containers.", field, maxContainers)
			}
		}
	case providers.Messages:
		container := b.value("container")
		if len(container) > 0 && container[0] == '{' {
			at := memberOf(container, "id")
			container = container[at.From:at.To]
		}
		add(unquoted(container), "container")
	}
	return goes, nil
}

// eachText calls visit with every member of objects within an array whose value is a text, until it says no.
func eachText(array []byte, visit func(name, text []byte) bool) bool {
	if len(array) == 0 || array[0] != '[' {
		return true
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(array), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var name []byte
	for {
		switch dec.PeekKind() {
		case jsontext.KindInvalid: // the end
			return true
		case jsontext.KindString:
			value, err := dec.ReadValue()
			if err != nil {
				return true // the check has read it
			}
			kind, n := dec.StackIndex(dec.StackDepth())
			switch {
			case kind != jsontext.KindBeginObject:
			case n%2 == 1: // a name
				name = append(name[:0], unquoted(value)...)
			case !visit(name, unquoted(value)):
				return false
			}
		default:
			if _, err := dec.ReadToken(); err != nil {
				return true
			}
		}
	}
}
