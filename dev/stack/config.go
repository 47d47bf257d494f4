package main

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"modelrelay/dev/gatewayyaml"
	"modelrelay/dev/redis"
	"modelrelay/dev/settings"
	"modelrelay/dev/upstream"
)

// gatewayConfig is the configuration the gateway will run with, before the stack fills it in.
type gatewayConfig struct {
	text   []byte // the user's file; empty without one
	listen string
	// metrics: the file says where they are, or that there are none.
	metrics bool
	// redis: the file says where Redis is, so the stack's sentinels are nothing to it.
	redis  bool
	forced bool   // listen comes from the flag and replaces the file's
	token  string // the key of the printed commands; ${NAME} in it is left to the shell that runs them
	admin  string // the operator's key of the printed commands, as token
}

// readConfig reads the user's file where there is one, and the demo token of this data folder.
func (s *stack) readConfig() (*gatewayConfig, error) {
	c := &gatewayConfig{listen: s.flags.Listen, forced: s.flags.Listen != ""}
	var file struct {
		Listen  string `yaml:"listen"`
		Admin   string `yaml:"admin_key"`
		Metrics any    `yaml:"metrics"`
		Redis   any    `yaml:"redis"`
		Tokens  []struct {
			Key string `yaml:"key"`
		} `yaml:"tokens"`
	}
	if s.flags.Config != "" {
		var err error
		if c.text, err = os.ReadFile(s.absolute(s.flags.Config)); err != nil {
			return nil, fmt.Errorf("read the configuration: %w", err)
		}
		if err := yaml.Unmarshal(c.text, &file); err != nil {
			return nil, fmt.Errorf("read the configuration %s: %w", s.flags.Config, err)
		}
	}
	c.metrics, c.redis = file.Metrics != nil, file.Redis != nil
	if !c.forced {
		c.listen = os.ExpandEnv(file.Listen)
	}
	if c.listen == "" {
		c.listen = settings.GatewayAddress
	}
	var err error
	if c.admin = file.Admin; c.admin == "" {
		if c.admin, err = keptKey(filepath.Join(s.data, "admin_key"), "admin-"); err != nil {
			return nil, err
		}
	}
	if len(file.Tokens) > 0 {
		c.token = file.Tokens[0].Key
		return c, nil
	}
	c.token, err = s.demoToken()
	return c, err
}

// demoToken is the token of this data folder.
func (s *stack) demoToken() (string, error) {
	return keptKey(filepath.Join(s.data, "token"), "sk-demo-")
}

// keptKey returns the key stored in file, a new random one where there is none: the user's own channels may use it, so
// no other program may guess it.
func keptKey(file, prefix string) (string, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a name of ours in our folder
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read a key: %w", err)
	}
	key := prefix + rand.Text()
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep a key: %w", err)
	}
	return key, nil
}

// write puts the user's text and what it lacks of sections into file.
func (c *gatewayConfig) write(file string, sections []gatewayyaml.Section) error {
	text, err := gatewayyaml.Fill(c.text, sections)
	if err != nil {
		return fmt.Errorf("fill in the configuration: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return os.Chmod(file, 0o600) // one of an earlier run keeps its mode otherwise
}

// sections is the gateway.yaml of this stack.
func (s *stack) sections(at places, config *gatewayConfig) []gatewayyaml.Section {
	if config.redis {
		at.sentinels = nil
	}
	sections := append([]gatewayyaml.Section{
		{Key: "admin_key", Text: config.admin},
		{Key: "listen", Text: at.gateway, Force: config.forced || strings.HasSuffix(config.listen, ":0")},
		{Key: "log", Fields: []gatewayyaml.Field{{Key: "level", Value: "info"}, {Key: "format", Value: "json"}}},
	}, s.serviceSections(at, config.token)...)
	if at.metrics != "" {
		sections = append(sections, gatewayyaml.Section{Key: "metrics", Fields: []gatewayyaml.Field{{Key: "listen", Value: at.metrics}}})
	}
	if len(config.text) == 0 { // the prices of the user's own channels are not ours to guess
		sections = append(
			sections, gatewayyaml.Section{Key: "prices", Text: demoPrices()},
			// What a client may leave out, it may leave out here.
			gatewayyaml.Section{Key: "relay", Fields: []gatewayyaml.Field{
				{Key: "realtime_model", Value: "gpt-realtime"}, {Key: "moderation_model", Value: "omni-moderation-latest"},
			}},
			gatewayyaml.Section{Key: "video", Fields: []gatewayyaml.Field{{Key: "default_model", Value: "sora-2"}}},
		)
	}
	return sections
}

// demoPrices returns prices for all models, so that budgets and usage have something to count.
func demoPrices() string {
	prices := map[string]string{
		"gpt-4o":      "{input: 2.5, cached_input: 1.25, output: 10}",
		"gpt-4o-mini": "{input: 0.15, cached_input: 0.075, output: 0.6}",
		"sora-2":      "{second: 0.1}",
	}
	for _, channel := range upstream.Channels() {
		for model := range channel.Models {
			prices[model] = cmp.Or(prices[model], "{request: 0.01}")
		}
	}
	var text strings.Builder
	for _, model := range slices.Sorted(maps.Keys(prices)) {
		fmt.Fprintf(&text, "  %s: %s\n", model, prices[model])
	}
	return text.String()
}

// redisFields say where Redis is, with sentinels who knows that.
func redisFields(at places) []gatewayyaml.Field {
	fields := []gatewayyaml.Field{{Key: "url", Value: "redis://" + at.redis + "/0"}}
	if len(at.sentinels) > 0 {
		fields = append(fields, gatewayyaml.Field{Key: "sentinel", Value: map[string]any{"master": redis.Master, "addresses": at.sentinels}})
	}
	return fields
}

// serviceSections are the ones that name the stack's services.
func (s *stack) serviceSections(at places, token string) []gatewayyaml.Section {
	return []gatewayyaml.Section{
		{Key: "redis", Fields: redisFields(at)},
		{Key: "temporal", Fields: []gatewayyaml.Field{
			{Key: "address", Value: at.temporal},
			{Key: "namespace", Value: settings.Namespace},
			{Key: "task_queue", Value: settings.TaskQueue},
		}},
		{Key: "archive", Fields: []gatewayyaml.Field{
			{Key: "endpoint", Value: "http://" + at.s3},
			{Key: "bucket", Value: settings.Bucket},
			{Key: "access_key", Value: settings.AccessKey},
			{Key: "secret_key", Value: settings.SecretKey},
			{Key: "region", Value: settings.Region},
		}},
		{Key: "tokens", Text: fmt.Sprintf(
			"  - {name: demo, key: %s, group: default, models: [\"*\"], requests_per_minute: 0}\n", token)},
		{Key: "channels", Text: channelText(at.upstream, s.accountFile())},
	}
}
