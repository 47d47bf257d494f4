package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// errCommand: the keys of a command are not recognized.
var errCommand = errors.New("its keys are not known")

// renamed is a client that replaces Prefix in keys and channels with the operator's prefix.
type renamed struct {
	redis.UniversalClient
	keys keyNames
}

// Subscribe implements redis.UniversalClient: hooks do not see subscriptions.
func (r renamed) Subscribe(ctx context.Context, channels ...string) *redis.PubSub {
	names := make([]string, len(channels))
	for i, channel := range channels {
		names[i] = r.keys.name(channel)
	}
	return r.UniversalClient.Subscribe(ctx, names...)
}

// Channel returns the name of a channel in Redis.
func (r renamed) Channel(channel string) string { return r.keys.name(channel) }

// ChannelName returns the name of a channel in Redis. Only calls on an existing subscription need it; the client's Subscribe renames.
func ChannelName(client redis.UniversalClient, channel string) string {
	if r, is := client.(interface{ Channel(channel string) string }); is {
		return r.Channel(channel)
	}
	return channel
}

// keyNames replaces Prefix with another prefix. It implements redis.Hook.
type keyNames struct{ prefix string }

func (k keyNames) name(key string) string {
	if rest, ours := strings.CutPrefix(key, Prefix); ours {
		return k.prefix + rest
	}
	return key
}

// DialHook implements redis.Hook.
func (keyNames) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (k keyNames) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := k.rename(cmd); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (k keyNames) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := k.rename(cmd); err != nil {
				for _, cmd := range cmds {
					cmd.SetErr(err)
				}
				return err
			}
		}
		return next(ctx, cmds)
	}
}

// rename replaces the prefix of the keys of a command; of a script, those in KEYS.
func (k keyNames) rename(cmd redis.Cmder) error {
	args := cmd.Args()
	from, to := 1, 2
	switch cmd.Name() {
	case "multi", "exec", "ping", "time", "wait", "script", "info", "dbsize", "role", "flushdb", "cluster", "command",
		"hello", "auth", "select", "client", "readonly", "readwrite", "asking": // hooks also get the first commands of a connection
		return nil
	case "del", "exists", "unlink", "mget":
		to = len(args)
	case "eval", "evalsha":
		n, err := strconv.Atoi(fmt.Sprint(args[2]))
		if err != nil {
			return fmt.Errorf("%s: %w", cmd.Name(), errCommand)
		}
		from, to = 3, 3+n
	default: // the first argument is the key
		if to > len(args) || !strings.HasPrefix(fmt.Sprint(args[1]), Prefix) {
			return fmt.Errorf("%s: %w", cmd.Name(), errCommand)
		}
	}
	for i := from; i < to; i++ {
		key, isText := args[i].(string)
		if !isText {
			return fmt.Errorf("%s: %w", cmd.Name(), errCommand)
		}
		args[i] = k.name(key)
	}
	return nil
}

// hashTag reports whether a Redis Cluster stores all keys with the prefix in one slot.
func hashTag(prefix string) bool {
	_, rest, found := strings.Cut(prefix, "{")
	return found && strings.Index(rest, "}") > 0
}
