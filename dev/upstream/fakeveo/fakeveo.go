// Package fakeveo fakes Veo in both its shapes: on Google Cloud (Vertex AI), with access tokens that a service account's key is exchanged
// for, and that of the Gemini API, with API keys. Shapes: googleapis/js-genai (src/converters/_models_converters.ts,
// _operations_converters.ts), vercel/ai packages/google-vertex. Which unknown parameters Google Cloud refuses is not documented: all are.
//
// Below /veo/: v1/projects/{p}/locations/{l}/publishers/google/models/{m}:predictLongRunning|:fetchPredictOperation with tokens of
// /veo/token, for which /veo/service_account.json hands out a key; v1beta/models/{m}:predictLongRunning, /operations/{id},
// files/{id}:download with an API key.
package fakeveo

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream/fake"
	"modelrelay/dev/upstream/googleapi"
	"modelrelay/dev/upstream/jobs"
)

const (
	cloudModels  = "/veo/v1/projects/{project}/locations/{location}/publishers/google/models/"
	geminiModels = "/veo/v1beta/models/"
)

type api struct{ *fake.Server }

// Serve serves Google Cloud's shape under /veo/v1/projects, its tokens at /veo/token, and the Gemini API's under /veo/v1beta.
func Serve(server *fake.Server) {
	s := &api{server}
	notFound := func(string) fake.Problem {
		return fake.Problem{Status: http.StatusNotFound, Kind: fake.NotFound, Message: "Requested entity was not found."}
	}
	refusePath := func(x *fake.Exchange) { googleapi.Refuse(x, notFound("")) }
	cloud := &fake.Vendor{Name: "veo", Authenticate: accessToken, Refuse: googleapi.Refuse, Unknown: notFound}
	gemini := &fake.Vendor{Name: "veo", Authenticate: googleapi.Key, Refuse: googleapi.Refuse, Unknown: notFound}
	s.handleAccounts()

	create := &fake.Operation{
		Vendor: cloud, Name: "video.create", Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, true) },
		Answer: s.answerCreate,
	}
	fetch := &fake.Operation{Vendor: cloud, Name: "video.get", Parse: s.parseFetch, Answer: s.answerGet}
	unknown := &fake.Operation{Vendor: cloud, Name: "unknown", Answer: refusePath}
	s.Mux.HandleFunc("POST "+cloudModels+"{call}", func(w http.ResponseWriter, r *http.Request) {
		op := unknown
		switch _, action, _ := strings.Cut(r.PathValue("call"), ":"); action {
		case "predictLongRunning":
			op = create
		case "fetchPredictOperation":
			op = fetch
		}
		s.Serve(w, r, op)
	})

	keyed := &fake.Operation{
		Vendor: gemini, Name: "video.create",
		Parse: func(x *fake.Exchange) *fake.Problem { return parseCreate(x, false) }, Answer: s.answerCreate,
	}
	unknownKeyed := &fake.Operation{Vendor: gemini, Name: "unknown", Answer: refusePath}
	s.Mux.HandleFunc("POST "+geminiModels+"{call}", func(w http.ResponseWriter, r *http.Request) {
		if _, action, _ := strings.Cut(r.PathValue("call"), ":"); action == "predictLongRunning" {
			s.Serve(w, r, keyed)
			return
		}
		s.Serve(w, r, unknownKeyed)
	})
	s.Handle("GET "+geminiModels+"{model}/operations/{id}",
		fake.Operation{Vendor: gemini, Name: "video.get", Parse: s.ParseID, Answer: s.answerGet})
	s.Handle("GET /veo/v1beta/models", fake.Operation{Vendor: gemini, Name: "models", Answer: answerModels})
	s.Handle("GET /veo/v1beta/files/{file}", fake.Operation{Vendor: gemini, Name: "video.content", Parse: s.parseFile, Answer: s.answerFile})
	s.Handle("/veo/", fake.Operation{Vendor: gemini, Name: "unknown", Answer: refusePath})
}

func answerModels(x *fake.Exchange) {
	x.Accept()
	list := []any{}
	for _, name := range []string{"veo-3.1-generate-preview", "veo-3.1-fast-generate-preview"} {
		list = append(list, map[string]any{
			"name": "models/" + name, "displayName": name,
			"supportedGenerationMethods": []string{"predictLongRunning"},
		})
	}
	x.JSON(http.StatusOK, map[string]any{"models": list})
}

// parseFetch finds the job that the body of a fetchPredictOperation names, below the path's model.
func (s *api) parseFetch(x *fake.Exchange) *fake.Problem {
	var q struct {
		Name string `json:"operationName"`
	}
	if p := googleapi.Unknown(x.DecodeKnown(&q)); p != nil {
		return p
	}
	model, _, _ := strings.Cut(x.HTTP.URL.Path, ":")
	id, ok := strings.CutPrefix(q.Name, strings.TrimPrefix(model, "/veo/v1/")+"/operations/")
	if !ok {
		return fake.Invalidf("", "The operation is none of the model: %s", q.Name)
	}
	return s.ParseJob(x, id)
}

func (s *api) answerCreate(x *fake.Exchange) {
	q := fake.RequestOf[create](x)
	spec := jobs.Job{
		ID:      fake.RandomUUID(),
		Seconds: strconv.Itoa(q.Parameters.seconds()), Size: q.Parameters.Resolution, Outputs: q.Parameters.samples(),
	}
	for _, m := range q.media {
		m.Describe(&spec)
	}
	if j := s.Submit(x, spec); j != nil {
		x.JSON(http.StatusOK, map[string]string{"name": nameOf(x, j)})
	}
}

// nameOf is the name of a job's operation, in the shape that the call has.
func nameOf(x *fake.Exchange, j *jobs.Job) string {
	if project := x.HTTP.PathValue("project"); project != "" {
		return "projects/" + project + "/locations/" + x.HTTP.PathValue("location") + "/publishers/google/models/" + j.Model + "/operations/" +
			j.ID
	}
	return "models/" + j.Model + "/operations/" + j.ID
}

// answerGet answers only whether the operation is done: with the bytes in Google Cloud's shape, else with addresses that need the key.
func (s *api) answerGet(x *fake.Exchange) {
	j := s.Poll(x)
	if j == nil {
		return
	}
	now := time.Now()
	state, _ := j.At(now)
	operation := map[string]any{"name": nameOf(x, j)}
	cloud := x.HTTP.PathValue("project") != ""
	switch state {
	case jobs.Queued, jobs.Running:
	case jobs.Completed:
		operation["done"] = true
		videos := make([]any, 0, j.Outputs)
		for output := range j.Outputs {
			if cloud {
				videos = append(videos, map[string]string{"bytesBase64Encoded": fake.InlineOf(output), "mimeType": "video/mp4"})
				continue
			}
			uri := "http://" + x.HTTP.Host + "/veo/v1beta/files/" + fileName(j, output) + ":download?alt=media"
			videos = append(videos, map[string]any{"video": map[string]string{"uri": uri}})
		}
		operation["response"] = response(cloud, videos, nil)
	default:
		operation["done"] = true
		fault := j.FaultAs(now, "13")
		if fault.Code == "raiMediaFiltered" {
			operation["response"] = response(cloud, nil, []string{fault.Message})
			break
		}
		code, _ := strconv.Atoi(fault.Code) // another is none
		operation["error"] = map[string]any{"code": code, "message": fault.Message}
	}
	s.Inline(x, j, operation)
}

func response(cloud bool, videos []any, filtered []string) map[string]any {
	r := map[string]any{}
	if len(filtered) > 0 {
		r["raiMediaFilteredCount"], r["raiMediaFilteredReasons"] = len(filtered), filtered
	}
	if cloud {
		r["@type"] = "type.googleapis.com/cloud.ai.large_models.vision.GenerateVideoResponse"
		if len(videos) > 0 {
			r["videos"] = videos
		}
		return r
	}
	if len(videos) > 0 {
		r["generatedSamples"] = videos
	}
	return map[string]any{
		"@type":                 "type.googleapis.com/google.ai.generativelanguage.v1beta.PredictLongRunningResponse",
		"generateVideoResponse": r,
	}
}

// fileName is the id of an output's file: the job's, without what no file's id has, and the output's number in two digits.
func fileName(j *jobs.Job, output int) string {
	return strings.ReplaceAll(j.ID, "-", "") + "0" + strconv.Itoa(output)
}

func (s *api) parseFile(x *fake.Exchange) *fake.Problem {
	name, _, _ := strings.Cut(x.HTTP.PathValue("file"), ":")
	found := s.Jobs.List(func(j *jobs.Job) bool {
		return j.Vendor == "veo" && slices.ContainsFunc([]int{0, 1, 2, 3}, func(output int) bool { return fileName(j, output) == name })
	})
	if len(found) == 0 {
		p := x.Operation.Vendor.Unknown(name)
		return &p
	}
	return s.ParseJob(x, found[0].ID)
}

func (s *api) answerFile(x *fake.Exchange) {
	j, err := s.Look(x)
	now := time.Now()
	name, action, _ := strings.Cut(x.HTTP.PathValue("file"), ":")
	output, _ := strconv.Atoi(name[len(name)-1:]) // parseFile found it
	switch state, _ := j.At(now); {
	case err != nil:
		googleapi.Refuse(x, fake.Problem{Status: http.StatusInternalServerError, Kind: fake.Internal, Message: err.Error()})
	case state != jobs.Completed || output >= j.Outputs || j.LinkLife > 0 && now.After(time.Unix(*j.Ended(now), 0).Add(s.LinkLife(j))):
		googleapi.Refuse(x, fake.Problem{
			Status: http.StatusForbidden, Kind: fake.Forbidden,
			Message: "You do not have permission to access the File " + name + " or it may not exist.",
		})
	case action != "download":
		x.Accept()
		x.JSON(http.StatusOK, map[string]string{"name": "files/" + name, "mimeType": "video/mp4", "state": "ACTIVE"})
	default:
		x.Accept()
		s.ServeContent(x, j, output)
	}
}
