package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"modelrelay/api/operator"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/storage/sessions"
)

// Console is gateway console.
type Console struct {
	Operator string        `help:"Sign in as this operator; none: the operator of admin_key, else the first operator in the file." placeholder:"NAME"`
	Token    string        `help:"Sign in as the holder of this token, by id or name." placeholder:"NAME"`
	For      time.Duration `help:"How long the link is valid; at most 24h." default:"10m" placeholder:"DURATION"`
}

// Run prints an address with which a person can sign in to the console once.
func (c *Console) Run(ctx context.Context, p *Program) error {
	switch {
	case c.Operator != "" && c.Token != "":
		return &UsageError{Err: errors.New("--operator and --token exclude each other")}
	case c.For <= 0 || c.For > sessions.LongestLink:
		return &UsageError{Err: fmt.Errorf("--for: must be a duration up to %s", sessions.LongestLink)}
	}
	s, err := p.Open()
	if err != nil {
		return err
	}
	if !s.Config.Console.Enabled {
		return errors.New("the console is disabled: console.enabled is false")
	}
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	link := sessions.Link{Kind: "operator"}
	if c.Token != "" {
		link.Kind = "token"
		link.Owner, err = holderOf(ctx, p, s, c.Token)
	} else {
		link.Owner, err = operatorOf(s.Config, c.Operator)
	}
	if err != nil {
		return err
	}
	code, err := sessions.New(s.Redis, s.Config.Console.Idle).Offer(ctx, link, c.For)
	if err != nil {
		return err
	}
	address := consoleAddress(s.Config) + "/console/enter/" + code
	if p.JSON {
		return printJSON(p.Stdout, map[string]string{
			"url": address, link.Kind: link.Owner,
			"expires": time.Now().Add(c.For).UTC().Format(time.RFC3339),
		})
	}
	fmt.Fprintln(p.Stdout, address)
	fmt.Fprintf(p.Stderr, "The link signs in as the %s %s, once, within %s.\n", link.Kind, link.Owner, c.For)
	return nil
}

// operatorOf returns the name of an operator, the first one for "".
func operatorOf(cfg config.Config, name string) (string, error) {
	for _, operator := range cfg.AllOperators() {
		if name == "" || operator.Name == name {
			return operator.Name, nil
		}
	}
	if name == "" {
		return "", errors.New("the configuration has no operator: set admin_key, or add one to operators")
	}
	return "", fmt.Errorf("the configuration has no operator %q", name)
}

func holderOf(ctx context.Context, p *Program, s *Services, idOrName string) (string, error) {
	for _, seed := range s.Config.Tokens {
		if seed.Name == idOrName && !seed.Disabled {
			return seed.Name, nil
		}
	}
	var token operator.Token
	if err := p.ask(ctx, tokenPath(idOrName), nil, &token); err != nil {
		return "", err
	}
	if token.State != "active" {
		return "", fmt.Errorf("token %q is %s", idOrName, token.State)
	}
	return token.ID, nil
}

// consoleAddress returns the address of the console: console.url, else the listener on this machine.
func consoleAddress(cfg config.Config) string {
	if cfg.Console.URL != "" {
		return strings.TrimSuffix(cfg.Console.URL, "/")
	}
	listen := cfg.Console.Listen
	if listen == "" {
		listen = cfg.Listen
	}
	host, port, _ := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); host == "" || ip != nil && !ip.IsLoopback() {
		host = "localhost" // people may sign in only on loopback
	}
	scheme := "http://"
	if cfg.TLS.Enabled() {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}
