// Package cli has the gateway's commands other than serving: the operators' commands for tokens, tasks, usage, channels and the
// configuration file, and a small client of videos. It owns flags, help texts and output. It must not know how the program is
// composed: Program and Services have the dependencies of a command.
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

// Globals are the flags of every command.
type Globals struct {
	Config string `help:"Configuration file (GATEWAY_CONFIG; gateway.yaml)." default:"gateway.yaml" placeholder:"FILE" variable:"GATEWAY_CONFIG"`
	JSON   bool   `help:"Print JSON for machines." name:"json"`
}

// Program has the dependencies of a command.
type Program struct {
	Globals

	Stdout, Stderr io.Writer
	// Build describes the program.
	Build buildinfo.Info
	// Terminal reports whether Stderr is a terminal.
	Terminal bool
	// Load reads the configuration file.
	Load func() (config.Config, error)
	// Vendors returns the vendors for parsing the file.
	Vendors func() providers.Catalog
	// Open makes the components for the configuration file. It sends no request.
	Open func() (*Services, error)
	// Env looks up an environment variable.
	Env func(name string) (string, bool)
	// URL is the gateway of an operator's command, "" for this process.
	URL string
	// OnClose registers a function that is called after the command.
	OnClose func(release func() error)

	client *videoClient  // for the operators' operations, nil before the first call
	longer time.Duration // the wait of a command in addition to operatorTimeout
}

// Services are the dependencies of operators' commands.
type Services struct {
	Config   config.Config
	Redis    redis.UniversalClient
	Index    *taskindex.Index
	Operator *tasks.Operator
	// InProcess returns the transport to the operators' operations in this process.
	InProcess func() (http.RoundTripper, error)
	// Connect are the checks of config check --connect.
	Connect []setup.Check
}

// UsageError reports that the arguments are invalid; nothing was done.
type UsageError struct{ Err error }

// Error returns the reason.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *UsageError) Unwrap() error { return e.Err }

// Options are the options of the parser. env has the values of flags with an environment variable.
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
	return []kong.Option{
		kong.Resolvers(variables), kong.PostBuild(flagsOfDocuments), kong.NamedMapper("list", kong.MapperFunc(commaList)),
		kong.NamedMapper("past", timeFlag(false)), kong.NamedMapper("future", timeFlag(true)),
	}
}

// commaList parses a flag with comma-separated words into a *[]string. Further flags add words. "" is an empty list.
func commaList(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("list", &text); err != nil {
		return err
	}
	list := target.Elem()
	if list.IsNil() {
		list.Set(reflect.MakeSlice(list.Type(), 0, 0)) // "" is an empty list, not an absent one
	}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word != "" || strings.TrimSpace(text) != "" {
			list.Set(reflect.Append(list, reflect.ValueOf(word)))
		}
	}
	return nil
}

// timeFlag parses a flag with a time into a string or *string in the form of RFC 3339. "" is an absent time.
func timeFlag(future bool) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("time", &text); err != nil {
			return err
		}
		if text != "" {
			at, err := parseTime(text, future)
			if err != nil {
				return err
			}
			text = at.UTC().Format(time.RFC3339)
		}
		reflect.Indirect(target).SetString(text)
		return nil
	}
}

// flagsOfDocuments completes the flags whose fields belong to a document or a query of an operation too: the help text is the field's doc,
// and an enum without a default may be absent.
func flagsOfDocuments(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		flag, ok := node.(*kong.Flag)
		if !ok {
			return next(nil)
		}
		doc := flag.Tag.Get("doc")
		if doc == "" {
			return next(nil)
		}
		flag.Help = strings.ToUpper(doc[:1]) + doc[1:]
		switch {
		case flag.Tag.Type == "past":
			flag.Help += ", or a duration ago such as 24h"
		case flag.Tag.Type == "future":
			flag.Help += "; also a duration from now such as 720h"
		case flag.Enum != "":
			flag.Help += ". Values: " + strings.ReplaceAll(flag.Enum, ",", ", ")
			if flag.Default == "" {
				flag.Enum = "," + flag.Enum
			}
		}
		flag.Help += "."
		return next(nil)
	})
}

// parseTime parses a date, an RFC 3339 time, or a duration before now, or from now if the time is in the future.
func parseTime(text string, future bool) (time.Time, error) {
	now := time.Now()
	at, err := config.ParseTime(text)
	if length, failed := time.ParseDuration(text); failed == nil {
		if !future {
			length = -length
		}
		at, err = now.Add(length), nil
	}
	switch {
	case err != nil:
		return at, fmt.Errorf("%q is neither a date (2027-01-31), an RFC 3339 time nor a duration such as 24h", text)
	case future && !at.After(now):
		return at, errors.New("is in the past")
	}
	return at, nil
}
