package kling

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// The routes of the older API.
const (
	legacyText  = "text2video"
	legacyImage = "image2video"
	legacyOmni  = "omni-video"
)

const (
	// tokenLife is how long a token from an access key and its secret works, tokenSlack how far the vendor's clock may be behind.
	tokenLife  = 30 * time.Minute
	tokenSlack = 5 * time.Second
)

// pair splits a key into access key and secret key. A key of one part is an API key.
func pair(key providers.Secret) (access, secret string, ok bool) {
	access, secret, ok = strings.Cut(key.Reveal(), ":")
	return access, secret, ok && access != "" && secret != ""
}

// speaksLegacy reports whether the older API is used: for its models, and with an access key, which is valid only there.
func speaksLegacy(to providers.Target) bool {
	_, _, pairs := pair(to.Key)
	return pairs || legacyName(to.Model) || to.Model == "kling-video-o1"
}

// authorize adds an API key to a request, or a token from an access key and its secret.
func authorize(req *http.Request, key providers.Secret) error {
	token := key.Reveal()
	if access, secret, ok := pair(key); ok {
		now := time.Now()
		signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
			Issuer: access, ExpiresAt: jwt.NewNumericDate(now.Add(tokenLife)), NotBefore: jwt.NewNumericDate(now.Add(-tokenSlack)),
		}).SignedString([]byte(secret))
		if err != nil {
			return err
		}
		token = signed
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return nil
}

// legacyCreate writes the create of the older API, which is flat.
func (w *checked) legacyCreate() (create, error) {
	mode, err := w.mode()
	if err != nil {
		return create{}, err
	}
	members := upstream.Members{"model_name": w.model, "prompt": w.Prompt}
	members.Words(map[string]string{
		"negative_prompt": w.NegativePrompt, "mode": mode, "aspect_ratio": w.Frame.AspectRatio, "external_task_id": w.IdempotencyKey,
	})
	if w.Frame.Seconds > 0 {
		members["duration"] = strconv.Itoa(w.Frame.Seconds)
	}
	if w.GenerateAudio != nil && modelOf(w.model, true).Audio == providers.AudioOption {
		members["sound"] = map[bool]string{false: "off", true: "on"}[*w.GenerateAudio]
	}
	kind, err := w.legacyInputs(members)
	if err != nil {
		return create{}, err
	}
	body, err := upstream.Encode(w.VideoRequest, members)
	if err != nil {
		return create{}, err
	}
	return create{path: "/v1/videos/" + kind, kind: kind, body: body}, nil
}

// mode returns the older API's word for a resolution.
func (w *checked) mode() (string, error) {
	switch w.Frame.Resolution {
	case "":
		return "", nil
	case "720p":
		return "std", nil
	case fullHD:
		return "pro", nil
	case "4k":
		return "4k", nil
	}
	return "", providers.InvalidField("resolution", "The upstream makes 720p, 1080p and 4k.")
}

// legacyInputs writes the inputs and returns the route for them.
func (w *checked) legacyInputs(members map[string]any) (kind string, err error) {
	if !omni(w.model) {
		for _, role := range [...]providers.InputRole{providers.Reference, providers.SourceVideo} {
			if w.has(role) {
				return "", providers.InvalidField(providers.InputField(role), "The upstream takes '%s' with an omni model only.",
					providers.InputField(role))
			}
		}
		if len(w.frames) == 0 {
			return legacyText, nil
		}
		members["image"] = w.frames[providers.FirstFrame]
		if last, ok := w.frames[providers.LastFrame]; ok {
			members["image_tail"] = last
		}
		return legacyImage, nil
	}
	if !w.framed() && w.Frame.AspectRatio == "" {
		members["aspect_ratio"] = "16:9" // the default on other routes; required here
	}
	type image struct {
		URL  string `json:"image_url"`
		Type string `json:"type,omitempty"`
	}
	var images []image
	if first, ok := w.frames[providers.FirstFrame]; ok {
		images = append(images, image{first, "first_frame"})
	}
	if last, ok := w.frames[providers.LastFrame]; ok {
		images = append(images, image{last, "end_frame"})
	}
	for _, text := range w.references {
		images = append(images, image{URL: text})
	}
	if len(images) > 0 {
		members["image_list"] = images
	}
	if video, ok := w.frames[providers.SourceVideo]; ok {
		members["video_list"] = []map[string]string{{"video_url": video, "refer_type": "base", "keep_original_sound": "yes"}}
	}
	return legacyOmni, nil
}
