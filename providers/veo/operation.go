package veo

import (
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The members of a video in an answer: in the vendor's store, at a link, or in Base64.
const (
	storedField  = "gcsUri"
	linkField    = "uri"
	bytesField   = "bytesBase64Encoded"
	encodedField = "encodedVideo"
)

// videosOf returns the videos of an operation that can be read: videos on Google Cloud, samples at the Gemini API.
func videosOf(operation upstream.Doc) (videos []upstream.Doc) {
	for _, path := range []string{"response.videos", "response.generateVideoResponse.generatedSamples.video"} {
		for video := range operation.All(path) {
			if video.Get(storedField, linkField, bytesField, encodedField) != "" {
				videos = append(videos, video)
			}
		}
	}
	return videos
}

// statusOf maps the operation, which is only done or not. The vendor may withhold some of several videos.
func statusOf(operation upstream.Doc, key providers.Secret) (providers.VideoStatus, error) {
	s := providers.VideoStatus{State: providers.JobRunning, Progress: -1}
	if !operation.At("done").True() {
		return s, nil
	}
	rpcError, videos := upstream.RPCErrorOf(operation.At("error")), videosOf(operation)
	withheld := operation.Get("response.generateVideoResponse.raiMediaFilteredCount", "response.raiMediaFilteredCount")
	reasons := operation.Texts("response.generateVideoResponse.raiMediaFilteredReasons", "response.raiMediaFilteredReasons")
	switch {
	case rpcError != upstream.RPCError{}:
		code := upstream.RPCFailure(rpcError)
		// The numbers are those of google.rpc.Code for an exceeded deadline, an internal error and an unavailable service.
		own := slices.Contains([]string{"4", "13", "14"}, rpcError.Code) && (code == providers.FailedVendor || code == providers.FailedTimeout)
		return upstream.FailedJob("done", code, rpcError.Code, rpcError.Message, own, key), nil
	case len(videos) == 0 && (withheld != "" && withheld != "0" || len(reasons) > 0):
		return upstream.FailedJob("done", providers.FailedContent, "raiMediaFiltered", strings.Join(reasons, " "), false, key), nil
	case len(videos) == 0:
		return providers.VideoStatus{}, upstream.BrokenAnswer("done without a video", nil)
	}
	s.State, s.Outputs = providers.JobDone, len(videos)
	if videos[0].Get(linkField) != "" {
		s.ExpiresAt = time.Now().Add(fileLife)
	}
	return s, nil
}
