// Package cli is the gateway's commands other than serving: what operators ask of tokens, tasks, usage, channels and the configuration
// file, and a small client of videos. It owns flags, help texts and what is printed. What a command works with is given to it.
package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"modelrelay/api/setup"
	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows/tasks"
)

// Globals are the flags every command has.
type Globals struct {
	Config string `help:"Configuration file (GATEWAY_CONFIG; gateway.yaml)." default:"gateway.yaml" placeholder:"FILE" variable:"GATEWAY_CONFIG"`
	JSON   bool   `help:"Print JSON for machines." name:"json"`
}

// Program is what a command runs in.
type Program struct {
	Globals

	Stdout, Stderr io.Writer
	// Build describes the program.
	Build buildinfo.Info
	// Terminal reports whether Stderr is a terminal.
	Terminal bool
	// Load reads the configuration file.
	Load func() (config.Config, error)
	// Vendors is the catalog by which the file is read.
	Vendors func() providers.Catalog
	// Open puts together what the configuration file names. Nothing of it is asked before a command does.
	Open func() (*Services, error)
	// Env answers for the environment.
	Env func(name string) (string, bool)
	// URL is the gateway that an operator's command asks, "" for this process.
	URL string
	// OnClose has something released when the command is done.
	OnClose func(release func() error)

	client *videoClient  // of the operators' operations, nil before the first call
	longer time.Duration // what a command waits for beyond operatorTimeout
}

// Services are what an operator's commands work with.
type Services struct {
	Config   config.Config
	Redis    redis.UniversalClient
	Index    *taskindex.Index
	Operator *tasks.Operator
	// Inside carries requests to the operators' operations in this process.
	Inside func() (http.RoundTripper, error)
	// Connect checks what a deployment needs, for config check --connect.
	Connect []setup.Check
}

// UsageError says that the arguments are wrong; nothing was done.
type UsageError struct{ Err error }

// Error gives the reason.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UsageError) Unwrap() error { return e.Err }

// Options are what the commands want of the parser. env answers for the flags that have an environment variable.
func Options(env func(string) (string, bool)) []kong.Option {
	variables := kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		name := flag.Tag.Get("variable")
		if name == "" {
			return nil, nil
		}
		if value, ok := env(name); ok && value != "" {
			return value, nil
		}
		return nil, nil
	})
	return []kong.Option{kong.Resolvers(variables), kong.NamedMapper("list", kong.MapperFunc(commaList)), kong.PostBuild(helpFromDoc)}
}

// commaList reads a flag of words with commas between, into a *[]string. A second flag adds words; "" is no word.
func commaList(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("list", &text); err != nil {
		return err
	}
	list := target.Elem()
	if list.IsNil() {
		list.Set(reflect.MakeSlice(list.Type(), 0, 0)) // "" is an empty list, which is not none
	}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" || strings.TrimSpace(text) != "" {
			list.Set(reflect.Append(list, reflect.ValueOf(word)))
		}
	}
	return nil
}

// helpFromDoc helps with a flag by the doc of its field, where the field is a document's as well.
func helpFromDoc(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		flag, ok := node.(*kong.Flag)
		if !ok {
			return next(nil)
		}
		if doc := flag.Tag.Get("doc"); doc != "" && flag.Help == "" {
			flag.Help = strings.ToUpper(doc[:1]) + doc[1:] + "."
		}
		return next(nil)
	})
}

// parseSince reads a date, a time, or a duration before now; "" is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	t, err := config.ParseTime(text)
	if err != nil {
		return time.Time{}, notWhen(text)
	}
	return t, nil
}

// parseExpiry reads a time as the file does, or a duration from now.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return time.Time{}, errors.New("lies in the past")
		}
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	t, err := config.ParseTime(text)
	switch {
	case err != nil:
		return time.Time{}, notWhen(text)
	case !t.IsZero() && !t.After(now):
		return time.Time{}, errors.New("lies in the past")
	}
	return t, nil
}

// notWhen is the refusal of a moment where the command line takes a duration as well.
func notWhen(text string) error {
	return fmt.Errorf("%q is neither a date (2027-01-31), an RFC 3339 time nor a duration such as 24h", text)
}
