// Package googleapi is what the fakes of Google's APIs share: API keys, and errors as google.rpc.Status.
package googleapi

import (
	"net/http"
	"strings"

	"modelrelay/dev/upstream/fake"
)

// Key takes the key from x-goog-api-key or the query. A wrong key is a bad request here, not a 401.
func Key(x *fake.Exchange) (string, *fake.Problem) {
	key := x.HTTP.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = x.HTTP.URL.Query().Get("key")
	}
	switch {
	case key == "":
		return "", &fake.Problem{
			Status: http.StatusForbidden, Kind: fake.Forbidden,
			Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
		}
	case !strings.HasPrefix(key, fake.KeyPrefix):
		return key, &fake.Problem{
			Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "API_KEY_INVALID",
			Message: "API key not valid. Please pass a valid API key.",
		}
	}
	return key, nil
}

// Refuse answers with the vendor's error.
func Refuse(x *fake.Exchange, p fake.Problem) { x.JSON(p.Status, ErrorBody(p)) }

// ErrorBody is {"error":{code,message,status,details}}; a code becomes the reason in an ErrorInfo.
func ErrorBody(p fake.Problem) map[string]any {
	fields := map[string]any{"code": p.Status, "message": p.Message, "status": statusOf(p)}
	if p.Code != "" {
		fields["details"] = []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": p.Code, "domain": "googleapis.com",
			"metadata": map[string]string{"service": "generativelanguage.googleapis.com"},
		}}
	}
	if len(p.Violations) > 0 {
		var list []map[string]string
		for _, v := range p.Violations {
			list = append(list, map[string]string{"field": v.Field, "description": v.Description})
		}
		fields["details"] = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": list}}
	}
	return map[string]any{"error": fields}
}

func statusOf(p fake.Problem) string {
	if p.Status == http.StatusGatewayTimeout {
		return "DEADLINE_EXCEEDED"
	}
	switch p.Kind {
	case fake.Unauthenticated:
		return "UNAUTHENTICATED"
	case fake.Forbidden:
		return "PERMISSION_DENIED"
	case fake.NotFound:
		return "NOT_FOUND"
	case fake.Conflict:
		return "ABORTED"
	case fake.RateLimited:
		return "RESOURCE_EXHAUSTED"
	case fake.Internal:
		return "INTERNAL"
	case fake.Overloaded:
		return "UNAVAILABLE"
	case fake.Invalid, fake.Mismatch:
	}
	return "INVALID_ARGUMENT"
}

// Unknown words the refusal of a member that a message does not have.
func Unknown(p *fake.Problem) *fake.Problem {
	if p != nil && p.Param != "" {
		p.Message = "Invalid JSON payload received. Unknown name \"" + p.Param + "\": Cannot find field."
	}
	return p
}
