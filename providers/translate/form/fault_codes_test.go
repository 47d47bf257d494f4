package form_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// TestOpenAIFaultCodes: the code of an error within an answer decides whether another channel is tried. The sources of the codes: for keys
// and money https://platform.openai.com/docs/guides/error-codes; for requests ResponseError of openai-node 7.55; for "slow_down" and
// "server_is_overloaded" openai/codex (codex-rs/codex-api/src/sse/responses.rs); for statuses as codes the streams of OpenRouter
// (https://openrouter.ai/docs/api-reference/errors); for names with _error Anthropic's own endpoint of this format.
func TestOpenAIFaultCodes(t *testing.T) {
	t.Parallel()
	type meaning struct {
		kind  providers.Kind
		blame providers.Blame
		key   providers.KeyFault
	}
	exhausted := meaning{providers.Upstream, providers.BlameKey, providers.KeyExhausted}
	refused := meaning{providers.Upstream, providers.BlameKey, providers.KeyRefused}
	limited := meaning{providers.RateLimited, providers.BlameKey, providers.KeyBusy}
	overloaded := meaning{providers.Overloaded, providers.BlameChannel, 0}
	invalid := meaning{providers.Invalid, providers.BlameNone, 0}
	failed := meaning{providers.Upstream, providers.BlameChannel, 0}
	for err, want := range map[string]meaning{
		`{"code":"insufficient_quota"}`:                                     exhausted,
		`{"type":"insufficient_quota","code":null}`:                         exhausted,
		`{"code":"billing_hard_limit_reached"}`:                             exhausted,
		`{"code":"billing_not_active"}`:                                     exhausted,
		`{"code":402}`:                                                      exhausted,
		`{"code":"account_deactivated"}`:                                    refused,
		`{"code":"invalid_api_key","type":"invalid_request_error"}`:         refused,
		`{"type":"authentication_error"}`:                                   refused,
		`{"code":401}`:                                                      refused,
		`{"code":"rate_limit_exceeded","type":"tokens"}`:                    limited,
		`{"type":"rate_limit_error"}`:                                       limited,
		`{"code":429}`:                                                      limited,
		`{"code":"429"}`:                                                    limited,
		`{"code":"server_is_overloaded"}`:                                   overloaded,
		`{"code":"slow_down","type":"service_unavailable_error"}`:           overloaded,
		`{"type":"overloaded_error"}`:                                       overloaded,
		`{"code":503}`:                                                      overloaded,
		`{"code":529}`:                                                      overloaded,
		`{"code":"invalid_prompt"}`:                                         invalid,
		`{"code":"context_length_exceeded"}`:                                invalid,
		`{"code":"data_residency_mismatch"}`:                                invalid,
		`{"code":"failed_to_download_image"}`:                               invalid,
		`{"code":"image_too_large"}`:                                        invalid,
		`{"code":"empty_image_file"}`:                                       invalid,
		`{"code":"unsupported_image_media_type"}`:                           invalid,
		`{"code":"bio_policy"}`:                                             invalid,
		`{"code":"content_policy_violation"}`:                               invalid,
		`{"code":"invalid_image"}`:                                          invalid,
		`{"code":"string_above_max_length","type":"invalid_request_error"}`: invalid,
		`{"code":400}`:                                                      invalid,
		`{"code":413}`:                                                      invalid,
		`{"code":422}`:                                                      invalid,
		`{"code":"server_error"}`:                                           failed,
		`{"code":"vector_store_timeout"}`:                                   failed,
		`{"code":500,"type":"internal_error"}`:                              failed,
		`{"code":"tomorrow"}`:                                               failed,
	} {
		got := form.OpenAIFault(rawjson.Value(err))
		if (meaning{got.Kind, got.Blame, got.Key}) != want {
			t.Errorf("%s: got %s, blame %d, key %d, want %+v", err, got.Kind, got.Blame, got.Key, want)
		}
	}
}
