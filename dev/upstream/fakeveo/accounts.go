package fakeveo

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"modelrelay/dev/upstream/fake"
)

const (
	// tokenLife is how long an access token works.
	tokenLife = time.Hour
	// scope is what a token must be asked for.
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// grantType is that of a service account's assertion (RFC 7523).
	grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// tokenPrefix begins an access token.
	tokenPrefix = "ya29."
	// issuer signs what the fake issued. It is no secret: a fake that started anew still knows its own keys and tokens.
	issuer = "accounts of the fake upstreams"
	// keyBits is the size of an account's key.
	keyBits = 2048
)

// handleAccounts serves tokens, and keys of service accounts to any caller:
//
//	GET  /veo/service_account.json?account=NAME&project=PROJECT
//	POST /veo/token
func (s *api) handleAccounts() {
	v := &fake.Vendor{Name: "veo", Authenticate: func(*fake.Exchange) (string, *fake.Problem) { return "", nil }, Refuse: refuseToken}
	s.Handle("POST /veo/token", fake.Operation{Vendor: v, Name: "token", Answer: answerToken})
	key := sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, keyBits) })
	s.Mux.HandleFunc("GET /veo/service_account.json", func(w http.ResponseWriter, r *http.Request) {
		made, err := key()
		if err == nil {
			err = writeAccount(w, r, made)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// writeAccount shows the key of a service account. Its id holds the public key, so that the fake need not remember it.
func writeAccount(w http.ResponseWriter, r *http.Request, key *rsa.PrivateKey) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	public := base64.RawURLEncoding.EncodeToString(x509.MarshalPKCS1PublicKey(&key.PublicKey))
	name, project := r.URL.Query().Get("account"), r.URL.Query().Get("project")
	if name == "" {
		name = "gateway"
	}
	if project == "" {
		project = "fake-project"
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]string{
		"type": "service_account", "project_id": project, "private_key_id": public + "." + mark(public),
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})),
		"client_email": name + "@" + project + ".iam.gserviceaccount.com", "client_id": "100000000000000000000",
		"auth_uri": "http://" + r.Host + "/veo/auth", "token_uri": "http://" + r.Host + "/veo/token",
	})
}

func mark(text string) string {
	mac := hmac.New(sha256.New, []byte(issuer))
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// marked returns what a mark follows, and whether it was issued here.
func marked(text string) (string, bool) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 || !hmac.Equal([]byte(mark(text[:at])), []byte(text[at+1:])) {
		return "", false
	}
	return text[:at], true
}

// refuseToken answers as RFC 6749 has it.
func refuseToken(x *fake.Exchange, p fake.Problem) {
	if p.Code == "" {
		p.Code = "invalid_request"
	}
	x.JSON(p.Status, map[string]string{"error": p.Code, "error_description": p.Message})
}

func answerToken(x *fake.Exchange) {
	form, err := url.ParseQuery(string(x.Body))
	if err != nil || form.Get("grant_type") != grantType {
		refuseToken(x, fake.Problem{Status: http.StatusBadRequest, Code: "unsupported_grant_type", Message: "Invalid grant_type."})
		return
	}
	account, err := checkAssertion(form.Get("assertion"), "http://"+x.HTTP.Host+"/veo/token")
	if err != nil {
		refuseToken(x, fake.Problem{Status: http.StatusBadRequest, Code: "invalid_grant", Message: err.Error()})
		return
	}
	body := base64.RawURLEncoding.EncodeToString([]byte(account + " " + strconv.FormatInt(time.Now().Add(tokenLife).Unix(), 10)))
	x.Accept()
	x.JSON(http.StatusOK, map[string]any{
		"access_token": tokenPrefix + body + "." + mark(body), "expires_in": int(tokenLife.Seconds()) - 1,
		"token_type": "Bearer",
	})
}

// checkAssertion verifies a service account's assertion, a JWT, and returns the account.
func checkAssertion(assertion, audience string) (account string, err error) {
	var head struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Scope    string `json:"scope"`
		Audience string `json:"aud"`
		Issued   int64  `json:"iat"`
		Expires  int64  `json:"exp"`
	}
	parts := strings.Split(assertion, ".")
	const of = 3
	if len(parts) != of || readPart(parts[0], &head) != nil || readPart(parts[1], &claims) != nil {
		return "", errors.New("bad assertion")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	text, issued := marked(head.KeyID)
	der, derErr := base64.RawURLEncoding.DecodeString(text)
	if err != nil || derErr != nil || !issued || head.Algorithm != "RS256" {
		return "", errors.New("invalid JWT: the key is not known")
	}
	public, err := x509.ParsePKCS1PublicKey(der)
	if err != nil {
		return "", fmt.Errorf("invalid JWT: %w", err)
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now()
	const skew = 5 * time.Minute
	switch {
	case rsa.VerifyPKCS1v15(public, crypto.SHA256, sum[:], signature) != nil:
		return "", errors.New("invalid JWT signature")
	case claims.Audience != audience:
		return "", errors.New("invalid JWT: wrong audience")
	case !slices.Contains(strings.Fields(claims.Scope), scope):
		return "", errors.New("invalid JWT: no scope that is known")
	case now.After(time.Unix(claims.Expires, 0)), claims.Expires-claims.Issued > int64((tokenLife + skew).Seconds()),
		time.Unix(claims.Issued, 0).After(now.Add(skew)):
		return "", errors.New("invalid JWT: token must be a short-lived token (60 minutes) and in a reasonable timeframe")
	case !strings.HasSuffix(claims.Issuer, ".iam.gserviceaccount.com"):
		return "", errors.New("invalid JWT: account not found")
	}
	return claims.Issuer, nil
}

func readPart(part string, into any) error {
	b, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// accessToken takes the token of the Authorization header; the key it stands for is its account.
func accessToken(x *fake.Exchange) (string, *fake.Problem) {
	token, _ := strings.CutPrefix(x.HTTP.Header.Get("Authorization"), "Bearer ")
	token, ok := strings.CutPrefix(token, tokenPrefix)
	body, issued := marked(token)
	b, err := base64.RawURLEncoding.DecodeString(body)
	account, until, _ := strings.Cut(string(b), " ")
	expires, untilErr := strconv.ParseInt(until, 10, 64)
	if !ok || !issued || err != nil || untilErr != nil || time.Now().Unix() > expires {
		return account, &fake.Problem{
			Status: http.StatusUnauthorized, Kind: fake.Unauthenticated, Code: "ACCESS_TOKEN_TYPE_UNSUPPORTED",
			Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.",
		}
	}
	return account, nil
}
