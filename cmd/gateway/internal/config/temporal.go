package config

import (
	"fmt"
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/workflows/payloads"
)

// Temporal configures the connection to Temporal.
type Temporal struct {
	Address   string `yaml:"address" doc:"host:port of the Temporal frontend. The section temporal.tls turns TLS on, even as tls: {}"`
	Namespace string `yaml:"namespace" required:"true" doc:"Temporal namespace. Its retention must be at least four days longer than video.retention and background.retention"`
	TaskQueue string `yaml:"task_queue" required:"true" doc:"task queue of the gateway and its workers"`
	CallQueue string `yaml:"call_queue" required:"true" doc:"task queue of background calls"`
	// APIKey implies TLS.
	APIKey providers.Secret `yaml:"api_key" live:"true" doc:"API key of the namespace, as issued by Temporal Cloud; it implies tls. With ${file:PATH} the gateway reads a changed file again"`
	TLS    TemporalTLS      `yaml:"tls"`
	// PayloadKeys encrypt the payloads in histories: the first key encrypts, and all decrypt.
	PayloadKeys []payloads.Key `yaml:"payload_keys" live:"true"`
	UIOrigin    string         `yaml:"ui_origin" doc:"origin of the Temporal UI, such as https://cloud.temporal.io; its pages may use /codec/decode to decrypt payloads. Empty: only commands may"`
}

// TemporalTLS configures TLS to Temporal.
type TemporalTLS struct {
	certs.Files

	given bool
}

// Worker identifies the version of the workers for Temporal.
type Worker struct {
	Deployment string `yaml:"deployment" doc:"name of the Temporal worker deployment of the workers; empty: the server does not distinguish their versions"`
	BuildID    string `yaml:"build_id" doc:"version of this worker within the deployment; different for each release"`
}

// Secure reports whether the connection uses TLS.
func (t Temporal) Secure() bool { return t.TLS.given || t.APIKey != "" }

func (t *TemporalTLS) setGiven() { t.given = true }

func checkTemporal(v *validator, t Temporal) {
	v.address("temporal.address", t.Address)
	if t.CallQueue == t.TaskQueue {
		v.add("temporal.call_queue", "must differ from temporal.task_queue")
	}
	if strings.ContainsFunc(t.APIKey.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.add("temporal.api_key", "must be visible ASCII characters without spaces, as in a header")
	}
	if problem := t.TLS.Check(); problem != nil {
		v.add("temporal.tls."+problem.Part, "%v", problem.Err)
	}
	if t.UIOrigin == anyOrigin {
		v.add("temporal.ui_origin", "must be one origin: its pages may read payloads")
	} else if t.UIOrigin != "" {
		if problem := checkOrigin(t.UIOrigin, 1); problem != "" {
			v.add("temporal.ui_origin", "%s", problem)
		}
	}
	if len(t.PayloadKeys) > payloads.MostKeys {
		v.add("temporal.payload_keys", "has more than %d keys", payloads.MostKeys)
	}
	for i, key := range t.PayloadKeys {
		if field, err := key.Check(); err != nil {
			v.add(fmt.Sprintf("temporal.payload_keys[%d].%s", i, field), "%v", err)
		}
	}
	v.unique("temporal.payload_keys", "id", len(t.PayloadKeys), func(i int) string { return t.PayloadKeys[i].ID })
	v.unique("temporal.payload_keys", "key", len(t.PayloadKeys), func(i int) string { return t.PayloadKeys[i].Secret.Reveal() })
}

// longestVersion is Temporal's maximum length of a deployment's name and of a build id, in bytes.
const longestVersion = 255

// checkWorker checks the version of workers. Temporal separates its two parts by a dot or a colon, so the name may contain neither.
func checkWorker(v *validator, w Worker) {
	switch {
	case w.Deployment == "" && w.BuildID != "":
		v.add("worker.deployment", "is required with build_id")
	case w.Deployment != "" && w.BuildID == "":
		v.add("worker.build_id", "is required with deployment")
	}
	for _, part := range [...]struct{ key, text string }{{"worker.deployment", w.Deployment}, {"worker.build_id", w.BuildID}} {
		if len(part.text) > longestVersion || !providers.Plain(part.text) {
			v.add(part.key, "must have at most %d characters and no control character", longestVersion)
		}
	}
	if strings.ContainsAny(w.Deployment, ".:") {
		v.add("worker.deployment", "contains a dot or a colon, which separate it from the build id")
	}
}
