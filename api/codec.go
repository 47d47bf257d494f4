package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"modelrelay/api/admin"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// Where Temporal's UI and CLI have payloads decrypted: they add /decode to the address of a remote codec.
const (
	codecRoot = "/codec"
	codecPath = codecRoot + "/decode"
)

const (
	// maxCodecBody bounds what is to be decrypted at once, in bytes: the UI sends the payloads of one page of a history.
	maxCodecBody = 8 << 20
	// codecMaxAge is how long browsers remember what they may send, in seconds.
	codecMaxAge = "7200"
	// codecHeaders are what the Temporal UI sends.
	codecHeaders = "Authorization, Content-Type, X-Namespace"
)

// Codec decrypts payloads for operators who read Temporal's own UI.
type Codec struct {
	// Decode answers a request of Temporal's remote codec. Its error is the client's: the request is none.
	Decode func(body []byte) ([]byte, error)
	// Origin is that of the Temporal UI, whose pages may ask; "": pages may not.
	Origin string
}

// codec serves a Codec to operators, viewers among them: they see requests in the console as well.
type codec struct {
	Codec

	operators *admin.Operators
}

func (c *codec) routes(mux chi.Router) {
	mux.Options(codecPath, c.preflight)
	mux.Post(codecPath, c.serve)
	mux.Get(codecPath, c.signIn)
}

// share lets the pages of the Temporal UI read the answer; false: the request comes from another one.
func (c *codec) share(w http.ResponseWriter, r *http.Request) bool {
	header, origin := w.Header(), r.Header.Get("Origin")
	header.Add("Vary", "Origin")
	header.Set("Cache-Control", "no-store")
	if origin == "" {
		return true
	}
	if c.Origin == "" || origin != c.Origin {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Allow-Credentials", "true")
	return true
}

func foreignPage() *providers.Fault {
	return providers.Faultf(providers.Forbidden, "Pages of this origin may not ask. The gateway's temporal.ui_origin names the one that may.")
}

// preflight answers what browsers ask before, which carries no key.
func (c *codec) preflight(w http.ResponseWriter, r *http.Request) {
	if !c.share(w, r) || r.Header.Get("Origin") == "" {
		edge.At(w).Fail(foreignPage())
		return
	}
	header := w.Header()
	header.Set("Access-Control-Allow-Methods", http.MethodPost)
	header.Set("Access-Control-Allow-Headers", codecHeaders)
	header.Set("Access-Control-Max-Age", codecMaxAge)
	edge.At(w).Operation = edge.Probe
	w.WriteHeader(http.StatusNoContent)
}

// admit lets in operators, by a bearer key as their operations take it, or by the password of a browser's own sign-in: the
// Temporal UI has no field for a key, and sends what the browser knows. False: the request was answered.
func (c *codec) admit(w http.ResponseWriter, r *http.Request) bool {
	x := edge.At(w)
	x.Operation = "codecDecode"
	key := edge.Bearer(r)
	if _, password, ok := r.BasicAuth(); ok {
		key = password
	}
	_, err := c.operators.Admit(x.Source(), key)
	if err == nil {
		return true
	}
	fault := providers.AsFault(err)
	if fault.Kind != providers.Unauthenticated {
		x.Fail(fault)
		return false
	}
	x.Fault = fault
	w.Header().Set("WWW-Authenticate", `Basic realm="Temporal payloads: the password is an operator's key", charset="UTF-8"`)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write(x.FaultBody(fault)) // a client that is gone needs no answer
	return false
}

// signIn is where a person's browser learns the key.
func (c *codec) signIn(w http.ResponseWriter, r *http.Request) {
	if !c.share(w, r) {
		edge.At(w).Fail(foreignPage())
		return
	}
	if c.admit(w, r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "This browser may have payloads decrypted for the Temporal UI now.\n")
	}
}

func (c *codec) serve(w http.ResponseWriter, r *http.Request) {
	x := edge.At(w)
	if !c.share(w, r) {
		x.Fail(foreignPage())
		return
	}
	if !c.admit(w, r) {
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCodecBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		x.Fail(providers.Faultf(providers.TooLarge, "The request body is larger than %d bytes.", maxCodecBody))
		return
	}
	if err != nil {
		x.Fail(edge.ClientGone(err))
		return
	}
	clear, err := c.Decode(body)
	if err != nil {
		x.Fail(&providers.Fault{Kind: providers.Invalid, Message: "The request holds no payloads of Temporal's in JSON.", Err: err})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(clear) // a client that is gone needs no answer
}
