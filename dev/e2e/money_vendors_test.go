package e2e_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers/pricing"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// modelPrice is a price in billionths: per call, per token, per image and per second of sound.
type modelPrice struct{ request, input, cached, output, image, second int64 }

// ofMade is the price of what an upstream has made.
func (p modelPrice) ofMade(made stack.Chats) int64 {
	return p.request*made.Served + p.input*(made.InputTokens-made.CachedTokens) + p.cached*made.CachedTokens + p.output*made.OutputTokens +
		p.image*made.Images + p.second*made.AudioMilliseconds/1000
}

// yaml is the price as a member of the section prices.
func (p modelPrice) yaml(model string) string {
	amount := func(billionths int64) string { return pricing.Money(billionths).String() }
	return fmt.Sprintf("  %q: {unit: 1, request: %s, input: %s, cached_input: %s, output: %s, image: %s, audio_second: %s}\n",
		model, amount(p.request), amount(p.input), amount(p.cached), amount(p.output), amount(p.image), amount(p.second))
}

// vendorPrices are the models of the calls of TestMoneyOfEveryVendor. A model whose upstream does not count its tokens has a price per
// call only: the gateway estimates the others.
func vendorPrices() map[string]modelPrice {
	text := modelPrice{request: 1009, input: 3, cached: 1, output: 7}
	return map[string]modelPrice{
		"gpt-4o": text, "of-responses": {request: 11, input: 5, cached: 2, output: 13}, "glm-5": {input: 17, cached: 4, output: 19},
		"claude-sonnet-4-5": {request: 23, input: 29, cached: 3, output: 31}, "gemini-2.5-flash": {request: 1, input: 37, cached: 5, output: 41},
		"gemini-2.5-flash-image": {request: 2, input: 43, cached: 6, output: 47, image: 5000011},
		"gpt-image-1":            {request: 3, input: 53, output: 59},
		"dall-e-3":               {image: 40000003}, "text-embedding-3-small": {input: 61}, "gemini-embedding-001": {request: 67},
		"tts-1":           {request: 71},
		"gpt-4o-mini-tts": {input: 73, output: 79}, "whisper-1": {request: 83, second: 100003}, "rerank-1": {request: 89, input: 97},
		"gpt-3.5-turbo-instruct": {input: 101, output: 103}, "omni-moderation-latest": {request: 107},
	}
}

// vendorChannels are one channel of each kind of upstream of calls.
func vendorChannels(s *stack.Stack) string {
	var channels strings.Builder
	for _, c := range []struct{ name, vendor, path, more, models string }{
		{
			"openai", "openai", "/openai/v1", "dialect: both, ",
			"gpt-4o: , gpt-image-1: , dall-e-3: , text-embedding-3-small: , tts-1: , gpt-4o-mini-tts: , whisper-1: , rerank-1: , " +
				"gpt-3.5-turbo-instruct: , omni-moderation-latest: ",
		},
		{"responses", "openai", "/openai/v1", "dialect: responses, ", "of-responses: "},
		{"imitator", "openai", "/openai/v1", "dialect: chat, ", "glm-5: "},
		{"anthropic", "anthropic", "/anthropic", "", "claude-sonnet-4-5: "},
		{"gemini", "gemini", "/gemini", "", "gemini-2.5-flash: , gemini-2.5-flash-image: , gemini-embedding-001: "},
	} {
		fmt.Fprintf(
			&channels, "  - {name: call-%s, vendor: %s, base_url: 'http://%s%s', keys: [sk-upstream-call-%s], groups: [default], %smodels: {%s}}\n",
			c.name, c.vendor, s.UpstreamAt, c.path, c.name, c.more, c.models)
	}
	return channels.String()
}

// What a text of a call demands of the upstream.
const (
	remembered = "please remember" // a script's answer, most of whose input was cached
	refused    = "please refuse"   // an error, which costs nothing
)

// someCalls are calls of every format to every kind of upstream, and of every other operation. Call n differs from others by its text.
func someCalls(t *testing.T, n int) []stack.Request {
	t.Helper()
	text := fmt.Sprintf("Word %d.%s", n, strings.Repeat(" more", n%50))
	switch n % 5 {
	case 1:
		text += " " + remembered
	case 3:
		text += " " + refused
	}
	said := []map[string]any{{"role": "user", "content": text}}
	contents := []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": text}}}}
	var all []stack.Request
	post := func(path string, body map[string]any) {
		header := map[string]string{"Anthropic-Version": "2023-06-01"}
		all = append(all, stack.Request{Method: http.MethodPost, Path: path, Header: header, Body: body})
	}
	for _, model := range []string{"gpt-4o", "of-responses", "glm-5", "claude-sonnet-4-5", "gemini-2.5-flash"} {
		for _, stream := range []bool{false, true} {
			post("/v1/chat/completions", map[string]any{"model": model, "messages": said, "stream": stream})
			post("/v1/responses", map[string]any{"model": model, "input": text, "stream": stream, "store": false})
			post("/v1/messages", map[string]any{"model": model, "messages": said, "max_tokens": 5 + n%40, "stream": stream})
			method := map[bool]string{false: ":generateContent", true: ":streamGenerateContent?alt=sse"}[stream]
			post("/v1beta/models/"+model+method, map[string]any{"contents": contents})
		}
	}
	post("/v1/chat/completions", map[string]any{"model": "gpt-4o", "messages": said, "n": 2, "stream": n%2 == 0})
	post("/v1beta/models/gemini-2.5-flash-image:generateContent", map[string]any{
		"contents":         contents,
		"generationConfig": map[string]any{"responseModalities": []string{"TEXT", "IMAGE"}},
	})
	post("/v1/completions", map[string]any{"model": "gpt-3.5-turbo-instruct", "prompt": text, "stream": n%2 == 0})
	post("/v1/embeddings", map[string]any{"model": "text-embedding-3-small", "input": []string{text, "more"}})
	post("/v1/embeddings", map[string]any{"model": "gemini-embedding-001", "input": text})
	content := map[string]any{"parts": []any{map[string]any{"text": text}}}
	post("/v1beta/models/gemini-embedding-001:embedContent", map[string]any{"content": content})
	post("/v1beta/models/text-embedding-3-small:embedContent", map[string]any{"content": content})
	post("/v1/images/generations", map[string]any{"model": "gpt-image-1", "prompt": text, "n": 1 + n%3})
	post("/v1/images/generations", map[string]any{"model": "gpt-image-1", "prompt": text, "stream": true, "partial_images": 2})
	post("/v1/images/generations", map[string]any{"model": "dall-e-3", "prompt": text, "response_format": []string{"url", "b64_json"}[n%2]})
	post("/v1/audio/speech", map[string]any{"model": "tts-1", "input": text, "voice": "nova"})
	post("/v1/audio/speech", map[string]any{"model": "gpt-4o-mini-tts", "input": text, "voice": "nova", "stream_format": "sse"})
	post("/v1/rerank", map[string]any{"model": "rerank-1", "query": text, "documents": []string{"a word", "more"}})
	post("/v1/moderations", map[string]any{"model": "omni-moderation-latest", "input": text})
	return append(all, transcription(t, text, []string{"json", "text", "srt", "vtt", "verbose_json"}[n%5]), transcription(t, text, ""))
}

// transcription is a call about one second of sound; format "": as a stream.
func transcription(t *testing.T, prompt, format string) stack.Request {
	t.Helper()
	sound, err := os.ReadFile("../upstream/clip/tone.wav")
	if err != nil {
		t.Fatal(err)
	}
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	fields := map[string]string{"model": "whisper-1", "prompt": prompt, "response_format": format, "stream": "true"}
	if format == "" {
		delete(fields, "response_format")
	} else {
		delete(fields, "stream")
	}
	for name, value := range fields {
		_ = w.WriteField(name, value) // a buffer takes everything
	}
	file, _ := w.CreateFormFile("file", "tone.wav")
	_, _ = file.Write(sound)
	_ = w.Close()
	return stack.Request{
		Method: http.MethodPost, Path: "/v1/audio/transcriptions", Body: bytes.NewReader(form.Bytes()),
		Header: map[string]string{"Content-Type": w.FormDataContentType()},
	}
}

// ownWords is a video of each channel in the vendor's own parameters, as members of metadata.
func ownWords() map[string]string {
	return map[string]string{
		"ark": `{"duration": 10, "resolution": "1080p"}`, "bfl": `{"duration": 10, "resolution": "fhd"}`,
		"fal":       `{"duration": 4, "resolution": "1080p"}`,
		"fal-image": `{"duration": 9}`, "hailuo": `{"duration": 10, "resolution": "2K"}`,
		"kling": `{"settings": {"duration": 15, "resolution": "4k"}}`,
		"ltx":   `{"duration": 10, "resolution": "3840x2160"}`, "luma": `{"video": {"duration": "10s", "resolution": "1080p"}}`,
		"omni": `{"response_format": {"duration": "15s", "resolution": "4k"}}`, "pixverse": `{"duration": 8, "quality": "1080p"}`,
		"replicate": `{"duration": 4, "resolution": "1080p"}`, "runway": `{"duration": 10, "ratio": "1280:720"}`, "vendorc": `{"frames": 241}`,
		"veo":     `{"parameters": {"durationSeconds": 4, "resolution": "4k", "sampleCount": 2}}`,
		"veo-key": `{"parameters": {"durationSeconds": 8, "resolution": "4k"}}`,
		"vidu":    `{"duration": 8, "resolution": "1080p"}`, "wan": `{"parameters": {"duration": 30, "resolution": "1080P"}}`,
		"xai": `{"duration": 10, "resolution": "480p"}`, "zhipu": `{"duration": 10, "size": "3840x2160"}`,
	}
}

// The kinds of videos of TestMoneyOfEveryVendor.
const (
	plainVideo  = "without a length"
	soraVideo   = "in the fields of sora"
	ownVideo    = "in the vendor's words"
	longVideo   = "with a length"
	failedVideo = "that fails"
)

// createVideo makes a task of the kind and returns its prompt, "" where the vendor has no such kind.
func createVideo(t *testing.T, g *stack.Gateway, v stack.VideoVendor, kind string) (prompt string) {
	t.Helper()
	prompt = kind + " at " + v.Name
	body := map[string]any{"model": v.Name, "prompt": prompt}
	path := "/v1/video/generations"
	switch kind {
	case soraVideo:
		path = "/v1/videos"
		body["seconds"], body["size"] = strconv.Itoa(v.Seconds), v.Size
	case longVideo:
		body["duration"] = v.Seconds
	case ownVideo:
		own := ownWords()[v.Name]
		if own == "" {
			return ""
		}
		body["metadata"] = rawJSON(own)
	}
	if answer := g.Call(t, stack.Request{Method: http.MethodPost, Path: path, Token: "sk-payer", Body: body}); answer.Status != http.StatusOK {
		t.Errorf("%s: %d %s", prompt, answer.Status, answer.Body)
		return ""
	}
	return prompt
}

// rawJSON is JSON that is sent as it is.
type rawJSON string

// MarshalJSON implements [json.Marshaler].
func (r rawJSON) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// tierPrices are the prices in billionths of a second of video by its resolution.
func tierPrices() map[string]int64 {
	return map[string]int64{
		"480p": 10000001, "512p": 11000003, "540p": 12000007, "720p": 20000011, "768p": 30000013,
		"1080p": 40000017, "1440p": 50000019, "2k": 60000023, "4k": 80000027,
	}
}

const (
	// otherSecond is the price of a second of video without a known resolution.
	otherSecond = 5000009
	taskRequest = 1013
)

// videoPrice is the price of every video model, as a member of the section prices.
func videoPrice(model string) string {
	var tiers []string
	for resolution, second := range tierPrices() {
		tiers = append(tiers, fmt.Sprintf("{resolution: %s, second: %s}", resolution, pricing.Money(second)))
	}
	all := strings.Join(tiers, ", ")
	return fmt.Sprintf("  %s: {request: %s, second: %s, tiers: [%s]}\n", model, pricing.Money(taskRequest), pricing.Money(otherSecond), all)
}

// resolutionOf reads the size that an upstream has noted of a job.
func resolutionOf(size string) string {
	size = strings.ToLower(size)
	if word := map[string]string{"hd": "720p", "fhd": "1080p"}[size]; word != "" {
		return word
	}
	var width, height int
	if n, _ := fmt.Sscanf(strings.NewReplacer("*", " ", ":", " ", "x", " ").Replace(size), "%d %d", &width, &height); n == 2 {
		if width, height = max(width, height), min(width, height); height == 2160 {
			return "4k"
		}
		return strconv.Itoa(height) + "p"
	}
	return size
}

// ofJob is the price of what a vendor made.
func ofJob(t *testing.T, job stack.Job) int64 {
	t.Helper()
	seconds, err := strconv.ParseFloat(job.Seconds, 64)
	if err != nil {
		t.Errorf("the upstream does not report the length of %q: %+v", job.Prompt, job)
	}
	second, known := tierPrices()[resolutionOf(job.Size)]
	if !known {
		second = otherSecond
	}
	milliseconds := int64(seconds*1000+0.5) * int64(job.Outputs)
	return taskRequest + (second*milliseconds+999)/1000
}

// TestMoneyOfEveryVendor makes calls of every operation and format at every kind of upstream, natively and translated, and videos at every
// vendor: without a length, with one, and in the vendor's own words. The charges of each model are what the upstreams report that they
// made, to the billionth. The full set has 1,000 calls and 100 tasks.
func TestMoneyOfEveryVendor(t *testing.T) {
	t.Parallel()
	rounds, kinds := 2, []string{ownVideo}
	if stack.IsFull() {
		rounds, kinds = 18, []string{plainVideo, soraVideo, ownVideo, longVideo, failedVideo}
	}
	s := stack.Shared(t, "--video-min", "100ms", "--video-max", "100ms", unpaced)
	prices, vendors := vendorPrices(), s.VideoVendors()
	var section strings.Builder
	section.WriteString("  - {name: payer, key: sk-payer, group: default, models: [\"*\"], budget: 1000000}\nprices:\n")
	for model, price := range prices {
		section.WriteString(price.yaml(model))
	}
	for _, v := range vendors {
		section.WriteString(videoPrice(v.Name))
	}
	g := s.StartGateway(stack.GatewayOptions{
		Channels: vendorChannels(s) + s.VideoChannels(), Tokens: section.String(), RedisQuery: moneyRedis,
	})
	answers := make([]map[string]any, 2*rounds*len(prices))
	for i := range answers {
		answers[i] = map[string]any{
			"parts": []any{map[string]any{"text": "It is remembered."}},
			"usage": map[string]any{"input": 90 + i, "read": 60, "output": 20 + i%7, "reasoning": 5},
		}
	}
	s.Control.Do(http.MethodPost, "/scripts", map[string]any{"contains": remembered, "answers": answers}, nil)
	for _, operation := range []string{"chat", "responses", "messages", "generate", "stream"} {
		s.Control.AddRule(map[string]any{"operation": operation, "contains": refused, "action": "status", "status": 400})
	}
	s.Control.AddRule(map[string]any{
		"operation": "video.create", "contains": failedVideo, "action": "job_fail", "code": "InvalidParameter", "message": "It failed.",
	})

	prompts := make(map[string]string) // models by their jobs' prompts
	for _, v := range vendors {
		for _, kind := range kinds {
			if prompt := createVideo(t, g, v, kind); prompt != "" {
				prompts[prompt] = v.Name
			}
		}
	}
	made := payCalls(t, g, rounds)
	checkPaid(t, s, made, prompts)
}

// payCalls makes the calls of so many rounds, several at a time, and returns how many there were.
func payCalls(t *testing.T, g *stack.Gateway, rounds int) (made int64) {
	t.Helper()
	calls := make(chan stack.Request)
	var work sync.WaitGroup
	for range moneyCallers {
		work.Go(func() {
			for call := range calls {
				answer, err := g.Send(t.Context(), call)
				wanted := strings.Contains(fmt.Sprint(call.Body), refused)
				if err != nil || answer.Status != http.StatusOK && (answer.Status != http.StatusBadRequest || !wanted) {
					t.Errorf("%s: %v, %d %s", call.Path, err, answer.Status, answer.Body)
				}
			}
		})
	}
	for n := range rounds {
		for _, call := range someCalls(t, n) {
			call.Token = "sk-payer"
			calls <- call
			made++
		}
	}
	close(calls)
	work.Wait()
	return made
}

// checkPaid compares the ledger with what the upstreams made, model by model.
func checkPaid(t *testing.T, s *stack.Stack, calls int64, prompts map[string]string) {
	t.Helper()
	want := make(map[string]int64)
	var total int64
	for model, price := range vendorPrices() {
		made := s.Control.ServedBy("", "", model)
		want[model] = price.ofMade(made)
		if made.Served == 0 {
			t.Errorf("%s served no call", model)
		}
	}
	redis := s.RedisClient(moneyRedis)
	budgets := ledger.NewBudgets(redis, 0)
	m := &money{t: t, reader: ledger.NewReader(redis), budgets: budgets}
	var sum ledger.Row
	if !testwait.InTime(t, stack.TaskTimeout, func() bool {
		sum = m.sums("payer")
		return sum.Requests >= calls && sum.Tasks >= int64(len(prompts)) && m.balance("payer").Reserved == 0
	}) {
		left, err := budgets.Reservations(t.Context(), "payer")
		t.Errorf("%d calls, %d tasks; ledger %+v, balance %+v; %+v, %v", calls, len(prompts), sum, m.balance("payer"), left, err)
	}
	jobs := s.Control.Jobs()
	if len(jobs) != len(prompts) {
		t.Errorf("%d jobs for %d tasks", len(jobs), len(prompts))
	}
	for _, job := range jobs {
		model := prompts[job.Prompt]
		if job.State == "completed" {
			want[model] += ofJob(t, job)
		}
	}
	got := make(map[string]int64)
	for _, row := range m.rows("payer") {
		got[row.Model] += row.Cost
	}
	for model, cost := range want {
		total += cost
		if got[model] != cost {
			t.Errorf("%s: charged %s, the upstream made %s", model, pricing.Money(got[model]), pricing.Money(cost))
		}
	}
	if balance := m.balance("payer"); balance != (ledger.Balance{Spent: total}) {
		t.Errorf("balance %+v, want %d spent", balance, total)
	}
	t.Logf("%d calls and %d tasks for %s", calls, len(prompts), pricing.Money(total))
}
