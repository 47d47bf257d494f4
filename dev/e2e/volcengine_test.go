package e2e_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// volcengine is a client of the vendor's visual service as its SDK is one: it signs with an access key pair as
// volcengine/volc-sdk-golang does (base/sign.go), sends JSON, and reads the service's envelope. At a gateway it carries
// its token in x-api-key, the one thing its user has to add.
type volcengine struct {
	t                           *testing.T
	endpoint                    string // ends in a slash
	accessKey, secretKey, token string
}

// volcAnswer is the envelope around every answer of the service.
type volcAnswer struct {
	Code      int    `json:"code"`
	Message   string `json:"message"`
	RequestID string `json:"request_id"`
	Status    int    `json:"status"`
	Data      struct {
		TaskID   string `json:"task_id"`
		Status   string `json:"status"`
		VideoURL string `json:"video_url"`
	} `json:"data"`
}

// submit starts a job and returns its id.
func (v volcengine) submit(body map[string]any) string {
	v.t.Helper()
	status, answer := v.call("CVSync2AsyncSubmitTask", body)
	if status != http.StatusOK || answer.Code != 10000 || answer.Data.TaskID == "" {
		v.t.Fatalf("submit: %d %+v", status, answer)
	}
	return answer.Data.TaskID
}

// result asks for a job as the vendor's clients do, the req_key along.
func (v volcengine) result(reqKey, id string) (int, volcAnswer) {
	v.t.Helper()
	return v.call("CVSync2AsyncGetResult", map[string]any{"req_key": reqKey, "task_id": id})
}

func (v volcengine) call(action string, body map[string]any) (int, volcAnswer) {
	v.t.Helper()
	doc, err := json.Marshal(body)
	if err != nil {
		v.t.Fatal(err)
	}
	query := url.Values{"Action": {action}, "Version": {"2022-08-31"}}
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodPost, v.endpoint+"?"+query.Encode(), bytes.NewReader(doc))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if v.token != "" {
		req.Header.Set("X-Api-Key", v.token)
	}
	v.sign(req, doc, time.Now().UTC())
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	var answer volcAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		v.t.Fatalf("%s: %d %s: %v", action, resp.StatusCode, raw, err)
	}
	return resp.StatusCode, answer
}

func (v volcengine) sign(req *http.Request, body []byte, now time.Time) {
	date := now.Format("20060102T150405Z")
	req.Header.Set("X-Date", date)
	req.Header.Set("X-Content-Sha256", hexSum(body))
	signed := map[string]string{"host": req.URL.Host}
	for name := range req.Header {
		if name == "Content-Type" || strings.HasPrefix(name, "X-") {
			signed[strings.ToLower(name)] = req.Header.Get(name)
		}
	}
	names := make([]string, 0, len(signed))
	for name := range signed {
		names = append(names, name)
	}
	slices.Sort(names)
	var headers strings.Builder
	for _, name := range names {
		headers.WriteString(name + ":" + strings.TrimSpace(signed[name]) + "\n")
	}
	canonical := strings.Join([]string{
		req.Method, req.URL.Path, req.URL.RawQuery, headers.String(), strings.Join(names, ";"), hexSum(body),
	}, "\n")
	scope := date[:8] + "/cn-north-1/cv/request"
	key := []byte(v.secretKey)
	for step := range strings.SplitSeq(scope, "/") {
		key = hmacSum(key, step)
	}
	signature := hmacSum(key, strings.Join([]string{"HMAC-SHA256", date, scope, hexSum([]byte(canonical))}, "\n"))
	req.Header.Set("Authorization", "HMAC-SHA256 Credential="+v.accessKey+"/"+scope+", SignedHeaders="+strings.Join(names, ";")+
		", Signature="+hex.EncodeToString(signature))
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func hmacSum(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
