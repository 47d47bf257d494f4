package config

import (
	"fmt"
	"strings"

	"modelrelay/cmd/gateway/internal/certs"
	"modelrelay/providers"
	"modelrelay/workflows/payloads"
)

// Temporal runs the tasks.
type Temporal struct {
	Address   string `yaml:"address" doc:"host:port of the Temporal frontend"`
	Namespace string `yaml:"namespace" doc:"must keep closed workflows for video.retention or background.retention, whichever is longer, and four days more"`
	TaskQueue string `yaml:"task_queue" doc:"task queue that gateway and workers share"`
	CallQueue string `yaml:"call_queue" doc:"task queue of background calls"`
	// APIKey implies TLS.
	APIKey providers.Secret `yaml:"api_key" live:"true" doc:"bearer key of the namespace, as Temporal Cloud gives them; it implies tls. Write ${file:PATH}: a file that changes is read again"`
	TLS    TemporalTLS      `yaml:"tls"`
	// PayloadKeys encrypt what histories hold.
	PayloadKeys []PayloadKey `yaml:"payload_keys" live:"true"`
	UIOrigin    string       `yaml:"ui_origin" doc:"origin of the Temporal UI, such as https://cloud.temporal.io, whose pages may have payloads decrypted at /codec/decode; empty: commands alone may"`
}

// TemporalTLS is how to speak TLS to Temporal. Its files are read again for each new connection.
type TemporalTLS struct {
	CA         string `yaml:"ca" doc:"file of the certificates, in PEM, that sign the server's; empty: the system's. The section speaks TLS wherever it stands, as tls: {} too, and its files are read again for each new connection"`
	Cert       string `yaml:"cert" doc:"file of the client's certificate, in PEM, with those that sign it"`
	Key        string `yaml:"key" doc:"file of the certificate's private key, in PEM"`
	ServerName string `yaml:"server_name" doc:"name that the server's certificate must have; empty: the host of temporal.address"`

	given bool
}

// PayloadKey encrypts payloads. The first of the list writes, and all read.
type PayloadKey struct {
	ID  string           `yaml:"id" doc:"name of the key, stored with what it encrypts; never give it to another key"`
	Key providers.Secret `yaml:"key" doc:"32 random bytes in base64, as openssl rand -base64 32 writes them: inputs, results, memos, heartbeats, failures and summaries in Temporal are encrypted with the first key (AES-256-GCM), and read with all of them"`
}

// Worker is how Temporal distinguishes versions of workers.
type Worker struct {
	Deployment string `yaml:"deployment" doc:"name of the Temporal worker deployment of the workers; empty: the server does not distinguish their versions"`
	BuildID    string `yaml:"build_id" doc:"version of this worker within the deployment, another one for each release"`
}

// Secure reports whether the connection speaks TLS.
func (t Temporal) Secure() bool { return t.TLS.given || t.APIKey != "" }

// Payloads are the keys as what encrypts takes them.
func (t Temporal) Payloads() []payloads.Key {
	keys := make([]payloads.Key, len(t.PayloadKeys))
	for i, key := range t.PayloadKeys {
		keys[i] = payloads.Key{ID: key.ID, Secret: key.Key}
	}
	return keys
}

func (t *TemporalTLS) setGiven() { t.given = true }

// Files are those of the section.
func (t TemporalTLS) Files() certs.Files {
	return certs.Files{CA: t.CA, Cert: t.Cert, Key: t.Key, ServerName: t.ServerName}
}

func checkTemporal(v *validator, t Temporal) {
	v.address("temporal.address", t.Address)
	v.filled("temporal.namespace", t.Namespace)
	v.filled("temporal.task_queue", t.TaskQueue)
	v.filled("temporal.call_queue", t.CallQueue)
	if t.CallQueue == t.TaskQueue {
		v.add("temporal.call_queue", "must differ from temporal.task_queue")
	}
	if strings.ContainsFunc(t.APIKey.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }) {
		v.add("temporal.api_key", "wants visible ASCII characters without spaces, as a header can carry them")
	}
	if problem := t.TLS.Files().Check(); problem != nil {
		v.add("temporal.tls."+problem.Part, "%v", problem.Err)
	}
	if t.UIOrigin == anyOrigin {
		v.add("temporal.ui_origin", "wants one origin, whose pages may read payloads")
	} else if t.UIOrigin != "" {
		if problem := checkOrigin(t.UIOrigin, 1); problem != "" {
			v.add("temporal.ui_origin", "%s", problem)
		}
	}
	if err := payloads.CheckCount(len(t.PayloadKeys)); err != nil {
		v.add("temporal.payload_keys", "%v", err)
	}
	for i, key := range t.Payloads() {
		if field, err := key.Check(); err != nil {
			v.add(fmt.Sprintf("temporal.payload_keys[%d].%s", i, field), "%v", err)
		}
	}
	v.unique("temporal.payload_keys", "id", len(t.PayloadKeys), func(i int) string { return t.PayloadKeys[i].ID })
	v.unique("temporal.payload_keys", "key", len(t.PayloadKeys), func(i int) string { return t.PayloadKeys[i].Key.Reveal() })
}

// longestVersion is what Temporal takes of a deployment's name and a build id, in bytes.
const longestVersion = 255

// checkWorker checks what workers call themselves. Temporal parts the two by a dot or a colon, so the name has neither.
func checkWorker(v *validator, w Worker) {
	switch {
	case w.Deployment == "" && w.BuildID != "":
		v.add("worker.deployment", "is missing beside build_id")
	case w.Deployment != "" && w.BuildID == "":
		v.add("worker.build_id", "is missing beside deployment")
	}
	for _, part := range [...]struct{ key, text string }{{"worker.deployment", w.Deployment}, {"worker.build_id", w.BuildID}} {
		if len(part.text) > longestVersion || !providers.Plain(part.text) {
			v.add(part.key, "wants up to %d characters, none of them a control character", longestVersion)
		}
	}
	if strings.ContainsAny(w.Deployment, ".:") {
		v.add("worker.deployment", "has a dot or a colon, which part it from the build id")
	}
}
