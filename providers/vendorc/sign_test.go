package vendorc_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendorc"
)

// TestSign compares with what the vendor's own SDK computes.
func TestSign(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/signatures.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Source  string `json:"source"`
		Vectors []struct {
			Name      string    `json:"name"`
			AccessKey string    `json:"access_key"`
			SecretKey string    `json:"secret_key"`
			URL       string    `json:"url"`
			Date      time.Time `json:"date"`
			Body      string    `json:"body"`
			SHA256    string    `json:"content_sha256"`
			Want      string    `json:"authorization"`
		} `json:"vectors"`
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Vectors) == 0 || file.Source == "" {
		t.Fatalf("got %d vectors of %q, %v", len(file.Vectors), file.Source, err)
	}
	for _, v := range file.Vectors {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("User-Agent", upstream.Product)
		// Another zone of the same moment: the signature's date is UTC.
		at := v.Date.In(time.FixedZone("", 8*3600))
		vendorc.Sign(req, []byte(v.Body), providers.Secret(v.AccessKey+":"+v.SecretKey), at)
		if got := req.Header.Get("Authorization"); got != v.Want {
			t.Errorf("%s: got %s\nwant %s", v.Name, got, v.Want)
		}
		if got := req.Header.Get("X-Content-Sha256"); got != v.SHA256 {
			t.Errorf("%s: got digest %s, want %s", v.Name, got, v.SHA256)
		}
		if got := req.Header.Get("X-Date"); got != v.Date.Format("20060102T150405Z") {
			t.Errorf("%s: got date %s", v.Name, got)
		}
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for key, good := range map[providers.Secret]bool{
		"ak:sk": true, "ak:s:k": true, "ak": false, "ak:": false, ":sk": false, "": false,
	} {
		if err := vendorc.CheckKey(key); (err == nil) != good {
			t.Errorf("%q: got %v", key.Reveal(), err)
		}
	}
}
