package trial

import (
	"maps"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Said is a sentence about what came of a trial.
type Said struct {
	// Words are the sentence, without the key.
	Words string
	// Code names the sentence of Sentences that Words are, and Values are what stands in it by name. "": they are a fault's own.
	Code   string
	Values map[string]string
}

// sentences are those of verdicts by their code.
func sentences() map[string]string {
	return map[string]string{
		"trial.nothing_free": "this vendor has nothing that is free to ask",
		"trial.good":         "address and key are good",
		"trial.right":        "address and key are good, and so is the right to {model}",
		"trial.rights":       "address and key are good, and so are the rights to {n} models",
		"trial.untold":       "address and key are good; which models the key may use is not told for free",
		"trial.lacks":        "address and key are good, but the key has no model {models}",
		codeAnswered:         "the model answered",
		codeMade:             "the vendor made the video, and it was read",
	}
}

const (
	codeAnswered = "trial.answered"
	codeMade     = "trial.made"
)

// Sentences are all sentences of a Said by their code, for who has them in other languages: {name} is the value of that name.
func Sentences() map[string]string {
	all := upstream.TroubleSentences()
	maps.Copy(all, sentences())
	return all
}

// say is a sentence with one value at most: its name and its text.
func say(code string, value ...string) Said {
	said := Said{Words: sentences()[code], Code: code}
	if len(value) == 2 {
		said.Words = strings.ReplaceAll(said.Words, "{"+value[0]+"}", value[1])
		said.Values = map[string]string{value[0]: value[1]}
	}
	return said
}

// Answered says of a paid chat, and Read of a paid video, that all went well.
func Answered() Said { return say(codeAnswered) }

// Read says that a paid video was made and read.
func Read() Said { return say(codeMade) }

// Refused says why an upstream was not reached or said no, with its own words and without the key.
func Refused(err error, key providers.Secret) Said {
	trouble := upstream.TroubleOf(err, key)
	said := Said{Words: trouble.Words, Code: trouble.Code}
	if strings.Contains(upstream.TroubleSentences()[trouble.Code], "{detail}") { // also where there is none: its place must go
		said.Values = map[string]string{"detail": trouble.Detail}
	}
	return said
}

// Trouble says why a paid test made no video, and whether it may be billed.
func (a Ask) Trouble(made Made, err error) Said {
	said := Refused(err, a.Target.Key)
	if made.Job == "" && providers.AsFault(err).Accepted == providers.AcceptedUnknown {
		said = Said{Words: said.Words + "; the vendor may have taken the job, and may bill it"}
	}
	return said
}
