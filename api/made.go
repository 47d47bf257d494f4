package api

import (
	"modelrelay/api/body"
	"modelrelay/providers"
)

// maxContainers bounds how many containers a call may name: each is looked up.
const maxContainers = 16

// madeBefore lists what earlier answers made and the call goes on from, the answer before it in front.
func madeBefore(operation providers.Operation, b *body.JSON) ([]providers.Made, error) {
	var goes []providers.Made
	add := func(id []byte, param string) bool {
		if len(id) > 0 {
			goes = append(goes, providers.Made{ID: string(id), Param: param})
		}
		return len(goes) <= maxContainers
	}
	switch operation {
	case providers.Responses, providers.CompactResponse:
		add(body.Unquote(b.Value("previous_response_id")), "previous_response_id")
		seen := make(map[string]bool)
		for _, field := range [...]string{"tools", "input"} {
			ok := body.EachText(b.Value(field), func(name, text []byte) bool {
				var room [64]byte
				switch string(body.AppendFolded(room[:0], name)) {
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
		container := b.Value("container")
		if len(container) > 0 && container[0] == '{' {
			at := body.Member(container, "id")
			container = container[at.From:at.To]
		}
		add(body.Unquote(container), "container")
	}
	return goes, nil
}
