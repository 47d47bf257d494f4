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
func (w *checked) legacyCreate() (upstream.JobRequest, error) {
	modes := map[string]string{"": "", "720p": "std", fullHD: "pro", "4k": "4k"}
	mode, known := modes[w.d.Frame.Resolution]
	if !known {
		w.d.Refuse(providers.InvalidField("resolution", "The upstream makes 720p, 1080p and 4k."))
	}
	w.d.Members["model_name"], w.d.Members["prompt"] = w.model, w.Prompt
	w.d.Words(map[string]string{
		"negative_prompt": w.NegativePrompt, "mode": mode, "aspect_ratio": w.d.Frame.AspectRatio, "external_task_id": w.IdempotencyKey,
	})
	if w.d.Frame.Seconds > 0 {
		w.d.Members["duration"] = strconv.Itoa(w.d.Frame.Seconds)
	}
	if w.GenerateAudio != nil && modelOf(w.model, true).Audio == providers.AudioOption {
		w.d.Members["sound"] = map[bool]string{false: "off", true: "on"}[*w.GenerateAudio]
	}
	kind := w.legacyInputs()
	create, err := w.d.Create("/v1/videos/"+kind, 0)
	create.Own = map[string]string{legacyField: kind}
	return create, err
}

// legacyInputs writes the inputs and returns the route for them.
func (w *checked) legacyInputs() (kind string) {
	members := w.d.Members
	if !omni(w.model) {
		for _, role := range [...]providers.InputRole{providers.Reference, providers.SourceVideo} {
			if w.has(role) {
				w.d.Refuse(providers.InvalidField(providers.InputField(role), "The upstream takes '%s' with an omni model only.",
					providers.InputField(role)))
			}
		}
		if len(w.frames) == 0 {
			return legacyText
		}
		members["image"] = w.frames[providers.FirstFrame]
		if last, ok := w.frames[providers.LastFrame]; ok {
			members["image_tail"] = last
		}
		return legacyImage
	}
	if !w.framed() && w.d.Frame.AspectRatio == "" {
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
	return legacyOmni
}
