package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"modelrelay/dev/upstream"
)

// channelText is the section of the channels to the fakes at an address. account is the file of the service account that the fake of
// Google Cloud issues.
func channelText(address, account string) string {
	var text strings.Builder
	for _, c := range upstream.Channels() {
		for i, key := range c.Keys {
			if key == upstream.Account {
				key = "${file:" + account + "}"
			}
			c.Keys[i] = strconv.Quote(key)
		}
		var models []string
		for _, name := range slices.Sorted(maps.Keys(c.Models)) {
			models = append(models, name+": "+c.Models[name])
		}
		fmt.Fprintf(&text, "  - name: %s\n    vendor: %s\n    base_url: http://%s%s\n    keys: [%s]\n    models: {%s}\n    groups: [default]\n",
			c.Name, c.Vendor, address, c.Path, strings.Join(c.Keys, ", "), strings.Join(models, ", "))
		if c.Fields != "" {
			fmt.Fprintf(&text, "    fields: %s\n", c.Fields)
		}
	}
	return text.String()
}

// accountTimeout bounds the making of a service account's key, which takes a busy machine seconds.
const accountTimeout = 30 * time.Second

// accountFile is where the service account for the fake of Google Cloud is kept.
func (s *stack) accountFile() string { return filepath.Join(s.data, "google-account.json") }

// keepAccount asks the fake of Google Cloud for a service account, unless there is one of an earlier run that asks for tokens at the
// same address.
func (s *stack) keepAccount(ctx context.Context, upstream string) error {
	kept, err := os.ReadFile(s.accountFile())
	if err == nil && strings.Contains(string(kept), "http://"+upstream+"/") {
		return nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the service account: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+upstream+"/veo/service_account.json", nil)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: accountTimeout}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask for a service account: %w", err)
	}
	defer resp.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	if err != nil {
		return fmt.Errorf("ask for a service account: %w", err)
	}
	return os.WriteFile(s.accountFile(), text, 0o600)
}
