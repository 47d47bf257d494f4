package edge

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// hookFaults makes huma render every error in the format of the request. huma has one such hook for each process, so it is set once.
// Without a request, huma needs only the type of the error.
var hookFaults = sync.OnceFunc(func() { //nolint:gochecknoglobals // huma.NewErrorWithContext is a global
	huma.NewErrorWithContext = func(ctx huma.Context, status int, message string, errs ...error) huma.StatusError {
		fault := faultOf(status, message, errs)
		if ctx == nil {
			return &problem{status: status, fault: fault}
		}
		x := Of(ctx.Context())
		fault = x.presence.recorded(fault)
		x.Fault = fault
		p := x.Format.render(fault, x.AnswerID())
		header := make(http.Header, 2)
		p.setHeaders(header)
		for name := range header {
			ctx.SetHeader(name, header.Get(name))
		}
		return p
	}
})

// faultOf converts huma's errors to a fault, by the location and the rule of a validation error: its text repeats the invalid value.
func faultOf(status int, message string, errs []error) *providers.Fault {
	for _, err := range errs {
		if fault, ok := errors.AsType[*providers.Fault](err); ok {
			return fault
		}
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestTimeout,
		http.StatusUnsupportedMediaType, http.StatusNotAcceptable:
		for _, err := range errs {
			var detail huma.ErrorDetailer
			if errors.As(err, &detail) {
				return fieldFault(detail.ErrorDetail())
			}
		}
		if strings.HasSuffix(message, "body is required") {
			return providers.InvalidField("", "The request body is empty: a JSON object is required.")
		}
		return providers.InvalidField("", "The request is not valid.")
	case http.StatusNotFound:
		return providers.Faultf(providers.NotFound, "Not found.")
	case http.StatusRequestEntityTooLarge:
		return providers.Faultf(providers.TooLarge, "The request body is too large.")
	}
	if len(errs) > 0 && errs[0] != nil {
		return providers.AsFault(errs[0])
	}
	return providers.AsFault(errors.New(message))
}

// InvalidInput returns the fault of huma's validation errors.
func InvalidInput(errs []error) error { return faultOf(http.StatusBadRequest, "", errs) }

// duplicateRule is the rule in the error of a duplicate name in a body.
const duplicateRule = " is given more than once"

// JSONBodies returns huma's formats of JSON. twice returns the location of a duplicate name of an object, "" for none: such a body is
// invalid, because encoding/json would use the last value silently. A body that is read as a json.RawMessage is not checked.
func JSONBodies(twice func(body []byte) string) map[string]huma.Format {
	format := huma.DefaultJSONFormat
	format.Unmarshal = func(data []byte, into any) error {
		switch into.(type) {
		case *any, *json.RawMessage: // huma validates with *any before it decodes
		default:
			if place := twice(data); place != "" {
				return errors.New(place + duplicateRule)
			}
		}
		return json.Unmarshal(data, into)
	}
	return map[string]huma.Format{"application/json": format, "json": format}
}

// fieldFault returns a fault that names the invalid field. If a field is missing, huma's location is the object without it.
func fieldFault(d *huma.ErrorDetail) *providers.Fault {
	param := trimLocation(d.Location)
	if param == "body" {
		param = ""
	}
	if missing, ok := strings.CutPrefix(d.Message, "expected required property "); ok {
		name, _, _ := strings.Cut(missing, " ")
		param = strings.TrimPrefix(param+"."+name, ".")
		return providers.InvalidField(param, "Invalid request: '%s' is required.", param)
	}
	if place, twice := strings.CutSuffix(d.Message, duplicateRule); twice {
		return providers.InvalidField(place, "Invalid request: '%s'%s.", place, duplicateRule)
	}
	// The value passed the schema, so it is a number that does not fit. The rest of the text is Go's, with the client's value.
	if _, place, found := strings.Cut(d.Message, "into Go struct field "); found {
		place, _, _ = strings.Cut(place, " of type ")
		param = place[strings.LastIndexByte(place, '.')+1:]
		return providers.InvalidField(param, "Invalid value for %q: out of range.", param)
	}
	if param == "" {
		return providers.InvalidField("", "The request body is not valid: %s.", d.Message)
	}
	return providers.InvalidField(param, "Invalid value for %q: %s.", param, d.Message)
}

// trimLocation removes huma's first word (query, path, body) from a location.
func trimLocation(location string) string {
	if _, rest, found := strings.Cut(location, "."); found {
		return rest
	}
	return location
}
