// Package upstream fakes the AI vendors the gateway talks to, for the development stack and for end-to-end, crash, chaos
// and load tests: one HTTP server, one path prefix and one package per vendor, and a control interface that lets a test decide what
// happens to which call. [modelrelay/dev/upstream/fake] is what they share and says how to add a vendor. Nothing is random but ids. It
// imports nothing of the product.
//
// # Vendors
//
// Each fake is a package, whose comment lists its paths below /NAME/. The table in vendors.go has all of them, with the channels that lead
// to them: GET /_control/channels. /media/ has the result links: no key, signed, as long as their vendor says or Options do; 403 once they
// expired.
//
// Keys begin with sk-upstream; what follows is free, so that tests can tell channels apart by it. For vendor C the access key begins
// with ak-upstream and its secret key is sk-upstream and what follows in the access key (ak-upstream-1, sk-upstream-1);
// the V4 signature is verified. Any other key earns the vendor's own refusal. Calls of Veo on Google Cloud count under the key that is
// their account's address.
//
// # Answers
//
// Text answers echo the last turn: "You said: …"; after a tool's result "The tool said: …"; where JSON is demanded
// {"echo":…}. Tools offered and not forbidden are called: the first, or the forced one, with {"echo":…} as arguments,
// and all of them when the turn holds the word parallel. One word is one output token and one event of a stream; input
// tokens are bytes of text over four. A bound on output tokens cuts the answer. An embedding depends on its text alone; a
// moderation flags the word violence; rerank scores by shared words; speech is one second of tone; a transcription names the file
// and its size. A realtime conversation echoes too, sends binary frames back, and closes as requested by
// {"type":"fake.close","code","reason"}.
//
// # Refusals
//
// Chat calls (chat, responses, messages, generate, stream and the counts) are refused as the vendors refuse them, in their words: unknown
// fields, turns out of order, results without calls, names, ids, schemas, sampling, thinking, caches, and what a vendor wants back
// untouched (signatures, encrypted reasoning) when it was not issued here or is elsewhere. The rules, each with its source, are the
// tables of the tests in [modelrelay/dev/upstream/strict] and below. What depends on a model goes by its name, gpt-5.4 or claude-opus-4-6;
// names that are none of a vendor's are exempt, and at OpenAI, as those of imitators, may have other fields. /generic refuses none of it.
// OpenAI's responses are stored in memory unless store is false: previous_response_id and item_reference find them.
//
// # Models
//
// Every model exists but those that begin with unknown. Words at the end of a name, after - or _, change what it does:
//
//	-fast       a video job takes 300 ms
//	-long       a video job takes ten minutes
//	-2s, -50ms  a video job takes that long; a stream sends an event that often
//	-manual     a video job stays queued until the control interface drives it
//	-fail       a video job fails at its end
//	-100chunks  an answer has that many words ("tok0 tok1 …"), a stream that many events of text
//
// They combine: sora-2-fast-fail, gpt-4o-100chunks-5ms. Otherwise a video job takes what Options say: it is queued for 15 % of
// that, then in progress with rising progress. Models that begin with sora- take only the seconds and sizes the vendor takes.
//
// Jobs are kept in Options.Data: a create is answered after its line is on disk, so that a process killed with SIGKILL and started
// again knows every job it accepted and how many there were; counts of polls and calls begin anew. Each output of each job has
// bytes of its own: the clip of clip/make.sh followed by a free box with the job's id.
//
// # Control
//
// All bodies and answers are JSON; a wrong order is 400 and an unknown job, rule or script 404, with {"error"}. Filters are
// the query parameters vendor, operation, key and model; each left out selects all.
//
//	POST   /_control/rules          adds a rule (below): {"id"}
//	GET    /_control/rules          {"rules"}, with how often each matched
//	POST   /_control/rules/{id}     {chunks}: a stall stops streams after so many events from now on, those that it holds too
//	DELETE /_control/rules[/{id}]   ends all rules or one; calls they hold stay held
//	POST   /_control/release        lets held calls go on; ?rule=ID those of one rule
//	GET    /_control/wait           long poll with filters, count (1), phase
//	                                (arrived|accepted|answered|canceled|faulted|ended|open) and timeout
//	                                (60s, at most that): {"reached","count"}. Counts run from the start or the last reset.
//	GET    /_control/stats          filters; {"vendors":{vendor:{operation:counts}},"total":counts,"connections":{"accepted","open"},
//	                                "videos":{"created","submissions","jobs":[…]}}; jobs=false leaves the list out
//	GET    /_control/jobs           filters and contains=TEXT of the prompt: {"jobs":[…]}
//	GET    /_control/jobs/{id}      one job: as kept, with state, progress, polls, seen, downloads, length and sha256 of its (first) content
//	POST   /_control/jobs/{id}      drives it: {state, progress, error:{code,message}, word, size, forgotten}, each optional; state is
//	                                queued, in_progress, completed, failed, cancelled or expired and holds from then on
//	GET    /_control/requests       filters and last=N: {"requests":[…]} as they arrived, oldest first: headers, size, sha256, and in head
//	                                the first 64 KiB of the body as base64. The last 128 of each vendor and operation are kept.
//	POST   /_control/scripts        adds a script (below): {"id"}
//	GET    /_control/scripts        {"scripts"}, with how many of their answers were taken
//	DELETE /_control/scripts[/{id}] ends all scripts or one
//	GET    /_control/channels       {"channels"} that lead to the fakes, as [Channel] has them
//	POST   /_control/reset          ends rules and scripts, releases calls, forgets counts, requests and jobs; keep=jobs keeps the jobs
//	GET    /healthz                 {"ok":true}
//
// counts are calls, accepted (the vendor took it), answered, canceled (the client went away first), faulted (a rule cut it), open now,
// sent, the bytes of events that connections have taken so far, and of calls of models whose answer was written to its end served,
// input_tokens, cached_tokens (part of them), output_tokens, images and audio_milliseconds: what those answers held, where the vendor names
// it. A call counts as arrived once its body is read and it is in
// requests. "created" counts jobs, "submissions" the creates that led to them, repeats of an idempotency key included. A realtime call
// that ends counts as answered, also where the client ended it.
//
// Operations: chat, completions, embeddings, responses, responses.compact, responses.input_tokens, moderations, rerank, images.generations,
// images.edits, images.content, audio.speech, audio.transcriptions, audio.translations, models, realtime, video.create, video.get,
// video.list, video.content, video.delete, video.remix, video.cancel (openai, generic); messages, messages.count_tokens, models
// (anthropic); generate, stream, count_tokens, embed, embed.batch, models, interactions, interactions.get, interactions.cancel,
// interactions.delete (gemini); video.create, video.get, video.content (all that make videos; a result that is in an answer counts as
// video.get), video.list, video.cancel, video.delete, models, account (where the vendor has them), files.get (omni), uploads,
// uploads.content (runway), token (veo), video.link (hailuo), upload (pixverse), video.result (fal); unknown for every other path.
//
// # Rules
//
// A rule has an action and what it matches: vendor, operation, key, model, job (an id), contains (text in the body, or in the prompt of
// the job the call is about); all optional. after=N lets N matching calls through first, times=N ends it after N more (0: never).
// Of the rules that spoil an answer the oldest that matches acts, of those that shape a job every one. accept reports whether the vendor
// takes the call before the answer is spoiled (the job is made, the call counts as accepted).
//
//	status   {status, body, headers, message, code}: answers so; without body the vendor's own error body. accept: false
//	garbage  {status, body, headers}: answers 200 and half a JSON object. accept: true
//	drop     cuts the connection without an answer. accept: true
//	hang     holds the call until released, then continues; the client may go away. accept: false
//	delay    {ms}: holds it so long; with accept before the answer instead of before the call. accept: false
//	cut      {chunks} or {bytes}: cuts the connection after so many events or bytes; neither: before the first
//	stall    {chunks} or {bytes}: stops there until released
//	slow     {bytes_per_second}
//	manual             a job made by the call waits to be driven
//	job_fail           {code, message}: the job made by the call will fail; the job read by it fails now
//	job_forget         the vendor no longer knows the job
//	job_unknown_word   {word}: answers call the job's state so, from now on
//	progress           {progress, state}: puts the job there permanently (in_progress unless state has another)
//	size               {bytes}: the job's content is that large (a valid file, made while it is sent)
//	link               {ms}: content and links of the job work that long
//
// # Scripts
//
// A script answers chat calls of any dialect (chat, responses, messages, generate and stream) with given words, whole or streamed as
// the call asks. Of the scripts that select a call (vendor, operation, key, model, contains: text in the body) the oldest answers it.
// [modelrelay/dev/upstream/script.Script] has every field:
//
//	{"model": "claude-sonnet-4-5", "answers": [
//	  {"parts": [{"think": "Hm."}, {"redacted": true}, {"text": ["cut ", "so"]}, {"call": {"name": "f", "arguments": {"a": 1}}}],
//	   "stop": "max_tokens", "usage": {"input": 90, "read": 60, "write": 10, "output": 20, "reasoning": 5}, "interleave": true,
//	   "break": {"after": 3, "how": "error", "status": 529, "message": "Overloaded"}}]}
//
// Each call takes the next answer. With "plan": true the answer is the one after as many rounds of tool results as the call's history
// has, so that a call of an agent outside its plan does not disturb it; calls without tools are not selected. {"any": [call, …]}
// calls the first tool that is offered. {"search": {"query", "pages": [{"url", "title"}]}} is a search of the web that the vendor makes
// where the call offers its search; {"cited": {"text", "page": 0}} is a text that cites a page found before. {{said}} is replaced by the
// turn's text, {{media}} by its media.
//
// Thoughts come as each vendor shows them: thinking blocks with a signature where the call thinks, thought parts where it includes
// thoughts, reasoning items with a summary where it asks for one and with encrypted_content where it includes that, reasoning_content
// in chat completions. Models named gemini-3 and later sign their first call, or else their text.
//
// # Sources
//
// Shapes were read in, and driven with, the vendors' own Go SDKs: github.com/openai/openai-go/v3 v3.95.0,
// github.com/anthropics/anthropic-sdk-go v1.60.0, google.golang.org/genai v1.77.0, github.com/volcengine/volc-sdk-golang v1.0.253.
// Error bodies and codes follow the vendors' public documentation. Not documented, and so a guess: OpenAI's status for content that is
// not ready (404), its message for an unknown video, and its answer to the deletion of a running one.
package upstream
