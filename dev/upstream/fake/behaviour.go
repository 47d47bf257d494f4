package fake

import (
	"strconv"
	"strings"
	"time"
)

// behaviour is what the end of a model's name asks for; doc.go lists the words.
type behaviour struct {
	manual bool          // a job waits for the control interface
	fails  bool          // a job fails at its end
	takes  time.Duration // how long a job takes; 0: as usual
	pace   time.Duration // between two events of a stream; 0: as usual
	Chunks int           // pieces of text in an answer; 0: those of the echo
}

const (
	fastJob = 300 * time.Millisecond
	longJob = 10 * time.Minute
)

// BehaviourOf reads words off the end of the name until one means nothing.
func BehaviourOf(model string) behaviour {
	var b behaviour
	for {
		at := strings.LastIndexAny(model, "-_")
		if at < 0 || !b.word(model[at+1:]) {
			return b
		}
		model = model[:at]
	}
}

func (b *behaviour) word(w string) bool {
	switch w {
	case "manual":
		b.manual = true
		return true
	case "fail":
		b.fails = true
		return true
	case "fast":
		b.takes = fastJob
		return true
	case "long":
		b.takes = longJob
		return true
	}
	if n, ok := strings.CutSuffix(w, "chunks"); ok {
		count, err := strconv.Atoi(n)
		b.Chunks = count
		return err == nil && count > 0
	}
	if len(w) < 2 || w[0] < '0' || w[0] > '9' || (w[len(w)-1] != 's' && w[len(w)-1] != 'm') {
		return false
	}
	d, err := time.ParseDuration(w)
	if err != nil || d <= 0 {
		return false
	}
	b.takes, b.pace = d, d
	return true
}

// UnknownModel reports whether a vendor refuses the model as one it does not have.
func UnknownModel(model string) bool { return strings.HasPrefix(model, "unknown") }
