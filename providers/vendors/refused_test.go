package vendors_test

import (
	"net/http"
	"strconv"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/vendors"
)

// TestRefusedCreates: what a vendor's own code means of a create that it refused. The codes are those of the vendors' pages on errors,
// which their packages name.
func TestRefusedCreates(t *testing.T) {
	t.Parallel()
	const content, input = providers.FailedContent, providers.FailedInput
	coded := func(format string) func(string) string {
		return func(code string) string {
			return `{` + format + `:"` + code + `","message":"Your words, in which the vendor found a risk."}`
		}
	}
	nested := func(code string) string { return `{"error":` + coded(`"code"`)(code) + `}` }
	number := func(name string) func(string) string {
		return func(code string) string { return `{"` + name + `":` + code + `}` }
	}
	for _, tc := range []struct {
		vendor, model string
		status        int
		body          func(code string) string
		want          map[string]string // by codes; "" where the code decides nothing
	}{
		{"ark", "doubao-seedance-2-0", 400, nested, map[string]string{
			"InputTextSensitiveContentDetected": content, "InputImageSensitiveContentDetected.PrivacyInformation": content,
			"InputTextRiskDetection": content,
			"InvalidParameter":       input, "MissingParameter.content": input, "Other": "",
		}},
		{
			"fal", "fal-ai/some", 422, func(code string) string { return `{"detail":[{"loc":["body"],"msg":"No.","type":"` + code + `"}]}` },
			map[string]string{
				"content_policy_violation": content, "missing": input, "image_too_small": input,
			},
		},
		{
			"hailuo", "MiniMax-Hailuo-02", 200, func(code string) string { return `{"base_resp":{"status_code":` + code + `,"status_msg":"No."}}` },
			map[string]string{
				"1026": content, "1027": content, "2013": input, "1042": input,
			},
		},
		{"kling", "kling-3.0-omni", 400, number("code"), map[string]string{"1300": content, "1301": content, "1200": input, "1201": input}},
		{"omni", "gemini-omni-flash", 400, nested, map[string]string{
			"SAFETY": content, "PROHIBITED_CONTENT": content, "BLOCKLIST": content,
			"invalid_request": input,
		}},
		{"pixverse", "v6", 200, number("ErrCode"), map[string]string{"500054": content, "500063": content, "400017": input, "500030": input}},
		{"vendorc", "jimeng_t2v_v30", 400, number("code"), map[string]string{
			"50411": content, "50412": content, "50413": content, "50518": content, "50520": providers.FailedVendor, "50215": input, "50480": "",
		}},
		{"veo", "veo-3.1", 400, func(code string) string {
			return `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"` + code + `"}}`
		}, map[string]string{
			"The prompt violates our usage guidelines. Support codes: 58061214": content, "Unknown name.": input, "The safetyness of a word": input,
		}},
		{"vidu", "viduq3-pro", 400, coded(`"reason"`), map[string]string{
			"TaskPromptPolicyViolation": content, "AuditSubmitIllegal": content, "CreationPolicyViolation": content, "FieldInvalid": input,
			"ImageDownloadFailure": input, "PageSizeOutOfRange": input, "BadRequest": input, "ModelUnavailable": "",
		}},
		{"wan", "wan2.7-t2v", 400, coded(`"code"`), map[string]string{
			"DataInspectionFailed": content, "IPInfringementSuspect": content, "InvalidParameter.DataInspection": input, "InvalidParameter": input,
			"Other": "",
		}},
		{
			"xai", "grok-imagine-video", 400, func(code string) string { return `{"code":"invalid-argument","error":"` + code + `"}` },
			map[string]string{
				"The prompt was rejected by content moderation.": content, "No such ratio.": "",
			},
		},
		{"zhipu", "cogvideox-3", 400, nested, map[string]string{"1301": content, "1210": input, "1214": input, "1261": input}},
	} {
		exchange := providertest.VideoExchange{Model: tc.model, Status: tc.status, New: func(client *http.Client) providers.VideoAdapter {
			return vendors.New(client)[tc.vendor].Video
		}}
		if tc.vendor == "vendorc" {
			exchange.Key = "access:secret"
		}
		for code, want := range tc.want {
			exchange.Answer = tc.body(code)
			seen, err := exchange.Submit(t, providers.VideoRequest{Prompt: "p"})
			fault := providers.AsFault(err)
			if fault == nil || len(seen) != 1 || fault.Accepted != providers.NotAccepted || fault.Retryable() {
				t.Fatalf("%s, %s: got %+v after %d requests, want a refusal", tc.vendor, code, fault, len(seen))
			}
			if fault.Failed != want {
				t.Errorf("%s, %s: got %q, want %q", tc.vendor, code, fault.Failed, want)
			}
			if _, err := strconv.Atoi(code); err == nil && fault.Code != code {
				t.Errorf("%s: got code %q, want %q", tc.vendor, fault.Code, code)
			}
		}
	}
}
