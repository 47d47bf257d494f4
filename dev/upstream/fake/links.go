package fake

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/jobs"
)

// mediaSecret signs links; they must hold over a restart, and they guard nothing.
const mediaSecret = "links of the fake upstreams"

// Link returns an address that needs no key and works until it expires.
func (s *Server) Link(x *Exchange, path string, life time.Duration) string {
	expires := strconv.FormatInt(time.Now().Add(life).UnixMilli(), 10)
	return "http://" + x.HTTP.Host + path + "?" + url.Values{"expires": {expires}, "sign": {signLink(path, expires)}}.Encode()
}

func signLink(path, expires string) string {
	mac := hmac.New(sha256.New, []byte(mediaSecret))
	mac.Write([]byte(path + "?" + expires))
	return hex.EncodeToString(mac.Sum(nil))
}

// VideoLink returns a link to one output of a job that ended.
func (s *Server) VideoLink(x *Exchange, j *jobs.Job, output int) string {
	life := s.LinkLife(j)
	if l := s.links[j.Vendor]; l != nil && l.FromEnd && j.LinkLife == 0 {
		now := time.Now()
		if ended := j.Ended(now); ended != nil {
			life -= now.Sub(time.Unix(*ended, 0))
		}
	}
	return s.Link(x, fmt.Sprintf("/media/%s/%s/%d.mp4", j.Vendor, j.ID, output), life)
}

// coverFile is the picture of a job's video.
const coverFile = "cover.webp"

// CoverLink returns a link to a picture of a job's video.
func (s *Server) CoverLink(x *Exchange, j *jobs.Job) string {
	return s.Link(x, fmt.Sprintf("/media/%s/%s/%s", j.Vendor, j.ID, coverFile), s.LinkLife(j))
}

// Links are the rules by which a vendor hands out results.
type Links struct {
	// Life is how long a link works; 0: an hour. Settings.LinkLife and the rule "link" go before it.
	Life time.Duration
	// FromEnd: it counts from the job's end, so that asking again gives no longer life; else from the answer that has the link.
	FromEnd bool
	// Authenticate, when set, wants the vendor's key as well; a link alone is not enough then.
	Authenticate func(x *Exchange) (key string, refusal *Problem)
	// NoHead says that a link is signed for GET alone.
	NoHead bool
}

// ServeLinks serves the result links of a vendor; l may be nil: a link of an hour that needs no key. Their calls count as its
// video.content.
func (s *Server) ServeLinks(name string, l *Links) {
	if l == nil {
		l = new(Links)
	}
	s.links[name] = l
	v := &Vendor{Name: name, Authenticate: l.check, Refuse: RefuseLink}
	s.Handle("GET /media/"+name+"/{id}/{output}", Operation{v, "video.content", s.ParseID, s.answerLink})
}

func (l *Links) check(x *Exchange) (string, *Problem) {
	if l.NoHead && x.HTTP.Method == http.MethodHead {
		return "", &Problem{
			Status: http.StatusForbidden, Code: "SignatureDoesNotMatch",
			Message: "The signature of the link is for another method.",
		}
	}
	if _, refusal := LinkKey(x); refusal != nil || l.Authenticate == nil {
		return "", refusal
	}
	return l.Authenticate(x)
}

// LinkKey checks signature and age. A link carries no key.
func LinkKey(x *Exchange) (string, *Problem) {
	query := x.HTTP.URL.Query()
	expires := query.Get("expires")
	if !hmac.Equal([]byte(query.Get("sign")), []byte(signLink(x.HTTP.URL.Path, expires))) {
		return "", &Problem{Status: http.StatusForbidden, Code: "SignatureDoesNotMatch", Message: "The signature of the link is wrong."}
	}
	at, err := strconv.ParseInt(expires, 10, 64)
	if err != nil || time.Now().UnixMilli() > at {
		return "", &Problem{Status: http.StatusForbidden, Code: "AccessDenied", Message: "Request has expired."}
	}
	return "", nil
}

// RefuseLink answers like the object stores such links lead to.
func RefuseLink(x *Exchange, p Problem) {
	if p.Code == "" {
		p.Code = "NoSuchKey"
	}
	x.Bytes(p.Status, "application/xml", fmt.Appendf(nil,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>%s</Message></Error>\n", p.Code, p.Message))
}

func (s *Server) answerLink(x *Exchange) {
	if x.HTTP.PathValue("output") == coverFile {
		x.Accept()
		x.Bytes(http.StatusOK, "image/webp", s.Clip.Thumbnail)
		return
	}
	output, err := strconv.Atoi(strings.TrimSuffix(x.HTTP.PathValue("output"), ".mp4"))
	j, changeErr := s.Look(x)
	if err != nil || changeErr != nil || j.Forgotten || output < 0 || output >= j.Outputs {
		RefuseLink(x, Problem{Status: http.StatusNotFound, Message: "The specified key does not exist."})
		return
	}
	x.Accept()
	s.ServeContent(x, j, output)
}
