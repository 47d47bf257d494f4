package videos

import (
	"math"
	"strconv"
	"strings"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// textOrNumber is a number, or a string that contains one.
type textOrNumber = body.Either[string, float64]

func numeral(raw rawjson.Value) string {
	if raw.IsText() {
		return raw.Text().String()
	}
	return body.Decimal(raw)
}

// agreeNumber reads an integer above 0 that must equal the known one, if there is one.
func agreeNumber(known *int, place string, raw []byte) error {
	if raw == nil {
		return nil
	}
	n, err := positive(place, []byte(numeral(raw)))
	switch {
	case err != nil:
		return err
	case *known != 0 && *known != n:
		return givenTwice(place)
	}
	*known = n
	return nil
}

// agreeLength reads a length under one of its names that must equal the known one, if there is one.
func agreeLength(req *providers.VideoRequest, name, place string, raw []byte) error {
	if raw == nil {
		return nil
	}
	var seconds string
	var err error
	if name == "frames" {
		seconds, err = secondsOfFrames(place, numeral(raw))
	} else {
		seconds, err = parseSeconds(place, numeral(raw))
	}
	if err != nil {
		return err
	}
	if req.Seconds == "" {
		req.Seconds = seconds
		return nil
	}
	known, _ := strconv.ParseFloat(req.Seconds, 64) // parseSeconds has parsed both
	given, _ := strconv.ParseFloat(seconds, 64)
	if math.Abs(known-given) > 0.5/vendorCFrames { // the length of a frame is not exact
		return givenTwice(place)
	}
	return nil
}

func givenTwice(place string) *providers.Fault {
	return providers.InvalidField(place, "Invalid request: '%s' differs from another field of the request.", place)
}

// secondsOfFrames returns the length of a number of frames of a Jimeng video. The first frame is extra.
func secondsOfFrames(place, text string) (string, error) {
	n, err := positive(place, []byte(text))
	if err != nil {
		return "", err
	}
	if n == 1 {
		return "", providers.InvalidField(place, "Invalid request: '%s' must be an integer above 1.", place)
	}
	return strconv.FormatFloat(math.Round(float64(n-1)/vendorCFrames*1e4)/1e4, 'f', -1, 64), nil
}

// positive reads a JSON integer above 0.
func positive(param string, raw []byte) (int, error) {
	n, ok := rawjson.Value(raw).Int()
	if !ok || n <= 0 || n > math.MaxInt32 {
		return 0, providers.InvalidField(param, "Invalid request: '%s' must be an integer above 0.", param)
	}
	return int(n), nil
}

// parseSeconds validates the text of a duration: a positive decimal number.
func parseSeconds(param, text string) (string, error) {
	text = strings.TrimSpace(text)
	digits := strings.Trim(text, "0123456789.") == "" && len(text) <= 16
	if n, err := strconv.ParseFloat(text, 64); !digits || err != nil || n <= 0 {
		return "", providers.InvalidField(param, "Invalid request: '%s' must be a number of seconds above 0.", param)
	}
	return text, nil
}

// parseSize parses "1280x720"; 0, 0 for any other text.
func parseSize(size string) (width, height int) {
	w, h, found := strings.Cut(size, "x")
	if !found {
		return 0, 0
	}
	width, errW := strconv.Atoi(w)
	height, errH := strconv.Atoi(h)
	if errW != nil || errH != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}
