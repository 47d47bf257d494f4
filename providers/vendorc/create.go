package vendorc

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// framesPerSecond is the vendor's, which counts a video's length in frames plus the first one.
	framesPerSecond = 24
	// mostSeconds prevents an overflow of the number of frames; the vendor's own bound is much lower.
	mostSeconds = 3600
	// reqJSONLimit bounds the client's text in a ticket, in bytes. Histories contain it.
	reqJSONLimit = 2 << 10
	// nearRatio is the largest difference between the sides' ratio and one of the vendor's. The vendor's own sizes differ as much, because
	// they are multiples of 16 or 32 pixels.
	nearRatio = 0.03
)

func ratios() []string { return []string{"16:9", "4:3", "1:1", "3:4", "9:16", "21:9"} }

// sidesOf reads a size in the form of a ratio; zeros for any other text.
func sidesOf(ratio string) (width, height int) {
	return upstream.Loose(strings.Replace(ratio, ":", "x", 1)).Dimensions()
}

// maxImages is more than any of the vendor's models accepts.
const maxImages = 16

// VideoModels accepts the words that the adapter writes. The vendor checks what a req_key accepts.
func VideoModels(model string) (providers.VideoModel, bool) {
	resolution := "720p"
	if strings.HasSuffix(model, "_pro") || strings.Contains(model, "_1080") {
		resolution = "1080p"
	}
	return providers.VideoModel{
		UsualResolution: resolution,
		Seconds:         providers.AnyWord(), Sizes: providers.AnyWord(), AspectRatios: providers.AnyWord(), FPS: providers.AnyFPS, Seed: true,
		Inputs: []providers.VideoInput{{Role: providers.FirstFrame, Max: maxImages}},
	}, true
}

// create writes a submit.
func create(ctx context.Context, to providers.Target, req providers.VideoRequest) (create upstream.JobRequest, err error) {
	if req.N > 1 {
		return create, providers.InvalidField("n", "The upstream makes one video a job.")
	}
	fields, err := req.Parameters()
	if err != nil {
		return create, err
	}
	marks, err := takeReqJSON(fields)
	if err != nil {
		return create, err
	}
	members, own := upstream.Members{keyField: to.Model}, upstream.Members{keyField: to.Model}
	members.Words(map[string]string{"prompt": req.Prompt, "aspect_ratio": req.AspectRatio})
	own.Words(map[string]string{jsonField: marks})
	members.Seed(req)
	if req.Seconds != "" {
		if members["frames"], err = frames(req.Seconds); err != nil {
			return create, err
		}
	}
	if err := addImages(ctx, members, req.Inputs); err != nil {
		return create, err
	}
	if req.AspectRatio == "" && len(req.Inputs) == 0 { // with an image the vendor uses the image's ratio
		if err := addRatio(members, req); err != nil {
			return create, err
		}
	}
	body, err := upstream.Fields(fields, members)
	create = upstream.Create(submitPath, body)
	create.Own = own
	return create, err
}

// takeReqJSON removes the parameter for the polls of a job. The gateway polls itself, so its clients send it with the create.
func takeReqJSON(fields map[string]json.RawMessage) (string, error) {
	raw, given := fields[jsonField]
	if !given {
		return "", nil
	}
	delete(fields, jsonField)
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return "", providers.InvalidField(jsonField, "req_json must be a JSON object written as a string.")
	}
	if len(text) > reqJSONLimit || providers.WithoutQueries(text) != text {
		return "", providers.InvalidField(jsonField, "req_json may have at most %d bytes and must not contain a URL with a query.", reqJSONLimit)
	}
	return text, nil
}

// frames returns the number of frames of a video of so many seconds.
func frames(seconds string) (int, error) {
	s, err := strconv.ParseFloat(seconds, 64)
	if err != nil || !(s > 0 && s <= mostSeconds) {
		return 0, providers.InvalidField("seconds", "The upstream does not support a video of %q seconds.", seconds)
	}
	return int(math.Round(s*framesPerSecond)) + 1, nil
}

// addImages adds the input images, all by address or all as bytes; the vendor does not accept both.
func addImages(ctx context.Context, members map[string]any, images []providers.Media) error {
	var addresses, data []string
	for _, image := range images {
		text, err := upstream.InputBase64(ctx, image)
		switch {
		case err != nil:
			return err
		case image.URL != "":
			addresses = append(addresses, text)
		default:
			data = append(data, text)
		}
	}
	switch {
	case len(addresses) > 0 && len(data) > 0:
		return providers.InvalidField("image", "The upstream takes images by address or as data, not both in one request.")
	case len(addresses) > 0:
		members["image_urls"] = addresses
	case len(data) > 0:
		members["binary_data_base64"] = data
	}
	return nil
}

// addRatio adds the aspect ratio of the caller's size: the size itself if it has the form of a ratio.
func addRatio(members map[string]any, req providers.VideoRequest) error {
	width, height := req.Width, req.Height
	if width == 0 || height == 0 {
		if req.Size == "" {
			return nil
		}
		width, height = sidesOf(req.Size)
	}
	for _, ratio := range ratios() {
		w, h := sidesOf(ratio)
		if off := float64(width*h)/float64(max(1, height*w)) - 1; math.Abs(off) <= nearRatio {
			members["aspect_ratio"] = ratio
			return nil
		}
	}
	return providers.InvalidField("size", "The upstream makes videos of %s, not of this size.", strings.Join(ratios(), ", "))
}
