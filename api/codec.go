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

// The routes at which Temporal's UI and CLI request decrypted payloads: they append /decode to the address of a remote codec.
const (
	codecRoot = "/codec"
	codecPath = codecRoot + "/decode"
)

const (
	// maxCodecBody bounds the body of a request to decrypt, in bytes. The UI sends the payloads of one page of a history.
	maxCodecBody = 8 << 20
	// codecMaxAge is how long browsers may use the answer of a preflight, in seconds.
	codecMaxAge = "7200"
	// codecHeaders are the headers that the Temporal UI sends.
	codecHeaders = "Authorization, Content-Type, X-Namespace"
)

// Codec decrypts payloads for operators who use the Temporal UI.
type Codec struct {
	// Decode answers a request of Temporal's remote codec. An error means that the body is not such a request.
	Decode func(body []byte) ([]byte, error)
	// Origin is the origin of the Temporal UI, whose pages may use the codec; "": no page may.
	Origin string
}

// codec serves a Codec to operators. Viewers may use it too, because they see requests in the console as well.
type codec struct {
	Codec

	operators *admin.Operators
}

func (c *codec) routes(mux chi.Router) {
	mux.Options(codecPath, c.preflight)
	mux.Post(codecPath, c.serve)
	mux.Get(codecPath, c.signIn)
}

// share lets the pages of the Temporal UI read the answer. It reports false if the request comes from a page of another origin.
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
	return providers.Faultf(providers.Forbidden, "Pages of this origin may not use this interface. "+
		"The gateway's temporal.ui_origin names the permitted origin.")
}

// preflight answers the preflight of a browser, which has no key.
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

// admit authenticates an operator by a bearer key, or by the password of HTTP basic authentication. The Temporal UI has no field for a key,
// but a browser sends the password by itself. False: the request was answered.
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
	_, _ = w.Write(x.FaultBody(fault)) // the client may have left
	return false
}

// signIn makes a browser ask the operator for the key.
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
		x.Fail(&providers.Fault{Kind: providers.Invalid, Message: "The request body does not contain Temporal payloads in JSON.", Err: err})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(clear) // the client may have left
}
