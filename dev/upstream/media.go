package upstream

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// mediaSecret signs links; they must hold over a restart, and they guard nothing.
const mediaSecret = "links of the fake upstreams"

// link returns an address that needs no key and works until it expires.
func (s *server) link(x *exchange, path string, life time.Duration) string {
	expires := strconv.FormatInt(time.Now().Add(life).UnixMilli(), 10)
	return "http://" + x.r.Host + path + "?" + url.Values{"expires": {expires}, "sign": {signLink(path, expires)}}.Encode()
}

func signLink(path, expires string) string {
	mac := hmac.New(sha256.New, []byte(mediaSecret))
	mac.Write([]byte(path + "?" + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// videoLink returns a link to one output of a job.
func (s *server) videoLink(x *exchange, j *job, output int) string {
	return s.link(x, fmt.Sprintf("/media/%s/%s/%d.mp4", j.Vendor, j.ID, output), s.linkLife(j))
}

// routeMedia serves the links. Their calls count under the vendor whose job they show.
func (s *server) routeMedia() {
	for _, name := range []string{"openai", "vendorc", "generic", "kling"} {
		v := &vendor{name: name, authenticate: linkKey, refuse: refuseLink}
		s.handle("GET /media/"+name+"/{id}/{output}", operation{v, "video.content", func(x *exchange) *problem {
			return s.parseJob(x, x.r.PathValue("id"))
		}, s.answerLink})
	}
	images := &vendor{name: "openai", authenticate: linkKey, refuse: refuseLink}
	s.handle("GET /media/images/{name}/{index}", operation{images, "images.content", nil, answerImageLink})
}

func answerImageLink(x *exchange) {
	prompt, err := base64.RawURLEncoding.DecodeString(x.r.PathValue("name"))
	index, indexErr := strconv.Atoi(strings.TrimSuffix(x.r.PathValue("index"), ".png"))
	if err != nil || indexErr != nil {
		refuseLink(x, problem{status: http.StatusNotFound, message: "The specified key does not exist."})
		return
	}
	x.accept()
	x.bytes(http.StatusOK, "image/png", paint(string(prompt), index))
}

// linkKey checks signature and age. A link carries no key.
func linkKey(x *exchange) (string, *problem) {
	query := x.r.URL.Query()
	expires := query.Get("expires")
	if !hmac.Equal([]byte(query.Get("sign")), []byte(signLink(x.r.URL.Path, expires))) {
		return "", &problem{status: http.StatusForbidden, code: "SignatureDoesNotMatch", message: "The signature of the link is wrong."}
	}
	at, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || time.Now().UnixMilli() > at {
		return "", &problem{status: http.StatusForbidden, code: "AccessDenied", message: "Request has expired."}
	}
	return "", nil
}

// refuseLink answers like the object stores such links lead to.
func refuseLink(x *exchange, p problem) {
	if p.code == "" {
		p.code = "NoSuchKey"
	}
	x.bytes(p.status, "application/xml", fmt.Appendf(nil,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>\n", p.code, p.message))
}

func (s *server) answerLink(x *exchange) {
	output, err := strconv.Atoi(strings.TrimSuffix(x.r.PathValue("output"), ".mp4"))
	j, changeErr := s.look(x)
	if err != nil || changeErr != nil || j.Forgotten || output < 0 || output >= j.Outputs {
		refuseLink(x, problem{status: http.StatusNotFound, message: "The specified key does not exist."})
		return
	}
	x.accept()
	s.serveContent(x, j, output)
}
