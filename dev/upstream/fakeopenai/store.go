package fakeopenai

import (
	"strings"
	"sync"

	"modelrelay/dev/upstream/chat"
	"modelrelay/dev/upstream/strict/openai"
)

// responseStore is what the vendor keeps of responses that may be stored: enough to know what a later call refers to.
type responseStore struct {
	mu        sync.Mutex
	items     map[string]storedItem
	responses map[string]storedResponse
	whole     map[string]*madeResponse
	order     []string // ids, oldest first
}

type storedItem struct{ kind, call string }

// storedResponse is a response and those before it.
type storedResponse struct {
	calls  []string // ids of all calls
	rounds int      // turns of tool results
}

// mostStored bounds the store; the oldest goes first.
const mostStored = 20000

func newResponseStore() *responseStore {
	return &responseStore{items: map[string]storedItem{}, responses: map[string]storedResponse{}, whole: map[string]*madeResponse{}}
}

// state is what the checker asks.
func (s *responseStore) state() openai.State {
	return openai.State{
		Item: func(id string) (kind, call string, ok bool) {
			s.mu.Lock()
			defer s.mu.Unlock()
			item, ok := s.items[id]
			return item.kind, item.call, ok
		},
		Response: func(id string) (calls []string, ok bool) {
			r, ok := s.response(id)
			return r.calls, ok
		},
		Encrypted: func(id, content string) (issued, same bool) {
			text, ok := strings.CutPrefix(content, encryptedPrefix)
			if !ok {
				return false, false
			}
			return chat.Sealed(sealReasoning, id, text)
		},
	}
}

func (s *responseStore) response(id string) (storedResponse, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.responses[id]
	return r, ok
}

// keep stores a response that answered q.
func (s *responseStore) keep(q *responseRequest, rounds int, id string, output []any) {
	r := storedResponse{rounds: rounds}
	if q.PreviousResponseID != nil {
		before, _ := s.response(*q.PreviousResponseID)
		r.calls = append(r.calls, before.calls...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range output {
		switch item := item.(type) {
		case responseCall:
			r.calls = append(r.calls, item.CallID)
			s.addItem(item.ID, storedItem{item.Type, item.CallID})
		case responseMessage:
			s.addItem(item.ID, storedItem{kind: item.Type})
		case responseReasoning:
			s.addItem(item.ID, storedItem{kind: item.Type})
		case responseSearch:
			s.addItem(item.ID, storedItem{kind: item.Type})
		}
	}
	s.responses[id] = r
	s.order = append(s.order, id)
	for len(s.order) > mostStored {
		delete(s.items, s.order[0])
		delete(s.responses, s.order[0])
		delete(s.whole, s.order[0])
		s.order = s.order[1:]
	}
}

// add stores a response that keep knows.
func (s *responseStore) add(r *madeResponse) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole[r.id] = r
}

// find returns a stored response; nil for none.
func (s *responseStore) find(id string) *madeResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole[id]
}

func (s *responseStore) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.whole, id)
	delete(s.responses, id)
}

// addItem must be called with the lock held.
func (s *responseStore) addItem(id string, item storedItem) {
	s.items[id] = item
	s.order = append(s.order, id)
}
