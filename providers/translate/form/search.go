package form

import (
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Search is a web search that the vendor of the model runs itself.
type Search struct {
	// At is the client's field of it, and Type the client's name for the tool.
	At   Path
	Type string
	// Allowed and Blocked are arrays of domains, MaxUses a number. Context is the amount of search results for the model: low, medium or high.
	Allowed, Blocked, MaxUses, Context rawjson.Value
	// Location is an object with the texts city, country, region and timezone.
	Location rawjson.Value
	// Forced: the model must search.
	Forced bool
}

// WriteLocation writes the member with the location, if there is one. below is the name of its object with the fields; "" for none.
func (s *Search) WriteLocation(out *Out, below string) {
	if !s.Location.IsSet() {
		return
	}
	out.JSON(`"user_location":{"type":"approximate"`)
	if below != "" {
		out.Object(below)
	}
	for name, value := range s.Location.Members() {
		for _, known := range [...]string{"city", "country", "region", "timezone"} {
			if name.Is(known) && value.IsText() {
				out.KeyRaw(known, value)
			}
		}
	}
	if below != "" {
		out.End()
	}
	out.End()
}

// Drop records the fields of a search that the target does not have.
func (s *Search) Drop(loss *Loss, members map[string]rawjson.Value) {
	for name, value := range members {
		if value.IsSet() {
			loss.Drop(s.At.Field(name).Name())
		}
	}
}

// LeaveSearch removes the search from a call whose upstream cannot search. It refuses a forced search.
func (p *Prompt) LeaveSearch(to Dialect, loss *Loss) *providers.Fault {
	s := p.Search
	if s == nil {
		return nil
	}
	if s.Forced {
		return Refusedf(s.At.String(), to, "whose model cannot search the web: the tool %s cannot be called.", s.Type)
	}
	loss.Drop(s.At.Name())
	p.Search = nil
	return nil
}

// SearchStep is one search that the vendor made.
type SearchStep struct {
	ID, Query string
	Sources   []Source
}

// Source is a page.
type Source struct{ URL, Title string }

// CiteUnit is the unit of a Citation's range.
type CiteUnit int

// The units: characters or bytes of the block's text, or all of the block.
const (
	CiteCharacters CiteUnit = iota
	CiteBytes
	CiteBlock
)

// Citation is the page that is the source of a range of a block's text. A reader returns From and To in its Unit. A writer receives them in
// characters of the block, with FromByte and ToByte in bytes; Base and BaseByte are the offset of the block in the choice's whole text.
type Citation struct {
	Source

	Unit                             CiteUnit
	From, To                         int
	FromByte, ToByte, Base, BaseByte int
	// Text is the text of the range.
	Text string
}

// URLCitation reads a citation of one of OpenAI's dialects: {"url", "title", "start_index", "end_index"}.
func URLCitation(value rawjson.Value) *Citation {
	from, _ := value.Get("start_index").Int()
	to, _ := value.Get("end_index").Int()
	return &Citation{Source: SourceOf(value), From: int(from), To: int(to)}
}

// SourceOf reads a page: {"url", "title"}.
func SourceOf(page rawjson.Value) Source {
	return Source{URL: page.Get("url").Text().String(), Title: page.Get("title").Text().String()}
}

// OpaqueSearch is the prefix of the placeholder for a vendor's encrypted content in another vendor's answer.
const OpaqueSearch = "mr1.s."

// hostedTools returns the types of tools that vendors run themselves, without dates.
func hostedTools() []string {
	return []string{
		"web_search", "file_search", "code_interpreter", "image_generation", "computer", "computer_use", "mcp", "local_shell", "shell",
		"apply_patch",
		"tool_search", "web_fetch", "code_execution", "bash", "text_editor", "memory", "advisor", "codeExecution", "urlContext", "fileSearch",
		"googleMaps",
		"computerUse", "googleSearchRetrieval", "enterpriseWebSearch", "mcpServers",
	}
}

// HostedTool returns the type of a tool that a vendor is known to run, otherwise "", so that a refusal repeats no text of a client.
func HostedTool(kind string) string {
	name := strings.TrimSuffix(kind, "_preview")
	if at := strings.LastIndexByte(name, '_'); at > 0 && strings.Trim(name[at+1:], "0123456789") == "" {
		name = name[:at]
	}
	if slices.Contains(hostedTools(), name) {
		return kind
	}
	return ""
}
