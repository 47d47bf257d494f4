package activities

import "modelrelay/providers"

// CallTicket is the vendor's handle of the answer of a call, which the vendor stores: its id, and the channel and key that have it.
type CallTicket struct {
	ID      string `json:"id"`
	Channel string `json:"channel"`
	// Key is the fingerprint of the upstream key.
	Key string `json:"key"`
}

// TicketOf returns the ticket of an answer with the vendor's id; nil for no id, and for an answer of no single channel.
func TicketOf(by providers.KeyRef, id string) *CallTicket {
	if by.Channel == "" || id == "" {
		return nil
	}
	return &CallTicket{ID: id, Channel: by.Channel, Key: by.Fingerprint}
}
