// Package fakehailuo fakes the two video APIs of MiniMax, whose jobs know nothing of one another. Shapes and codes:
// platform.minimax.io/docs/api-reference (video-generation-t2v, -i2v, -fl2v, -s2v, -query, -download, video-generation-v2-create,
// -query, -delete, errorcode).
//
// Below /hailuo/: v1/video_generation, v1/query/video_generation, v1/files/retrieve, v2/video_generation[/{id}],
// v2/query/video_generation/{id}.
package fakehailuo

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/jobs"
)

const name = "hailuo"

type api struct{ *fake.Server }

// Serve serves the APIs under /hailuo/v1 and /hailuo/v2. As there, unknown members are ignored, a link is made anew with
// each look, and the first API refuses with a 200.
func Serve(server *fake.Server) {
	s := &api{server}
	s.ServeLinks(name, &fake.Links{Life: 9 * time.Hour})
	unknown := func(string) fake.Problem { return *unknownTask() }
	first := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuseFirst, Unknown: unknown}
	s.Handle("POST /hailuo/v1/video_generation", fake.Operation{Vendor: first, Name: "video.create", Parse: parseFirst, Answer: s.answerFirst})
	s.Handle("GET /hailuo/v1/query/video_generation",
		fake.Operation{Vendor: first, Name: "video.get", Parse: s.parseFirstQuery, Answer: s.answerFirstQuery})
	s.Handle("GET /hailuo/v1/files/retrieve", fake.Operation{Vendor: first, Name: "video.link", Parse: s.parseFile, Answer: s.answerFile})
	second := &fake.Vendor{Name: name, Authenticate: fake.BearerKey, Refuse: refuseSecond, Unknown: unknown}
	s.Handle("POST /hailuo/v2/video_generation", fake.Operation{
		Vendor: second, Name: "video.create", Parse: parseSecond,
		Answer: s.answerSecond,
	})
	s.Handle("GET /hailuo/v2/query/video_generation/{id}",
		fake.Operation{Vendor: second, Name: "video.get", Parse: s.parseSecondQuery, Answer: s.answerSecondQuery})
	s.Handle("DELETE /hailuo/v2/video_generation/{id}",
		fake.Operation{Vendor: second, Name: "video.cancel", Parse: s.parseSecondQuery, Answer: s.answerDelete})
}

// isSecond reports whether a model is the second API's.
func isSecond(model string) bool { return strings.HasPrefix(strings.ToLower(model), "minimax-h3") }

// codeOf is the vendor's code for a problem.
func codeOf(p fake.Problem) int {
	if code, err := strconv.Atoi(p.Code); err == nil {
		return code
	}
	return fake.ByStatus[int]{
		http.StatusUnauthorized: 1004, http.StatusForbidden: 2061, http.StatusPaymentRequired: 1008, http.StatusTooManyRequests: 1002,
		http.StatusInternalServerError: 1000, 0: 2013,
	}.Of(p.Status)
}

func invalid(message string) *fake.Problem {
	return &fake.Problem{Status: http.StatusBadRequest, Kind: fake.Invalid, Code: "2013", Message: "invalid params, " + message}
}

func unknownTask() *fake.Problem { return invalid("task_id is invalid") }

// isMedia reports whether a text is an address or a data URI.
func isMedia(text string) bool {
	_, ok := fake.ReadURL(text)
	return ok
}

// describe writes down in a job what it was made from.
func describe(spec *jobs.Job, text string) {
	if m, ok := fake.ReadURL(text); ok {
		m.Describe(spec)
	}
}
