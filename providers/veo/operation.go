package veo

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// operation is the vendor's job.
type operation struct {
	Done     bool            `json:"done"`
	Error    json.RawMessage `json:"error"`
	Response json.RawMessage `json:"response"`
}

// result is one video: in the vendor's store, at a link, or in Base64.
type result struct {
	Stored  upstream.Loose `json:"gcsUri"`
	URI     upstream.Loose `json:"uri"`
	Bytes   upstream.Loose `json:"bytesBase64Encoded"`
	Encoded upstream.Loose `json:"encodedVideo"`
}

// filtered are the videos that the vendor withheld, with its reasons.
type filtered struct {
	Count   upstream.Loose   `json:"raiMediaFilteredCount"`
	Reasons []upstream.Loose `json:"raiMediaFilteredReasons"`
}

// response returns the result of a job: videos on Google Cloud, samples at the Gemini API.
func (o operation) response() (videos []result, held filtered) {
	var cloud struct {
		Videos []result        `json:"videos"`
		Gemini json.RawMessage `json:"generateVideoResponse"`
	}
	var samples struct {
		Samples []struct {
			Video result `json:"video"`
		} `json:"generatedSamples"`
	}
	// Errors leave no videos.
	_ = json.Unmarshal(o.Response, &cloud)
	_ = json.Unmarshal(o.Response, &held)
	videos = cloud.Videos
	if len(cloud.Gemini) > 0 {
		_ = json.Unmarshal(cloud.Gemini, &samples)
		_ = json.Unmarshal(cloud.Gemini, &held)
	}
	for _, sample := range samples.Samples {
		videos = append(videos, sample.Video)
	}
	return slices.DeleteFunc(videos, func(one result) bool { return one == result{} }), held
}

// videos are those that can be read.
func (o operation) videos() []result {
	videos, _ := o.response()
	return videos
}

// status maps the operation, which is only done or not. The vendor may withhold some of several videos.
func (o operation) status(key providers.Secret) (providers.VideoStatus, error) {
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1}
	if !o.Done {
		return s, nil
	}
	said := upstream.ParseRPCError(o.Error)
	videos, held := o.response()
	switch {
	case said != upstream.RPCError{}:
		code := upstream.RPCFailure(said)
		// The numbers are those of google.rpc.Code for a deadline, an internal error and a service that is away.
		own := slices.Contains([]string{"4", "13", "14"}, said.Code) && (code == providers.FailedVendor || code == providers.FailedTimeout)
		return upstream.FailedJob("done", code, said.Code, said.Message, own, key), nil
	case len(videos) == 0 && (held.Count != "" && held.Count != "0" || len(held.Reasons) > 0):
		var reasons []string
		for _, reason := range held.Reasons {
			reasons = append(reasons, string(reason))
		}
		return upstream.FailedJob("done", providers.FailedContent, "raiMediaFiltered", strings.Join(reasons, " "), false, key), nil
	case len(videos) == 0:
		return providers.VideoStatus{}, upstream.BrokenAnswer("done without a video", nil)
	}
	s.State, s.Outputs = providers.JobDone, len(videos)
	if videos[0].URI != "" {
		s.Dies = time.Now().Add(fileLife)
	}
	return s, nil
}
