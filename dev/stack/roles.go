package main

import (
	"context"

	"modelrelay/dev/temporal"
)

// The processes that the parts of production are made of. `temporal --parts production` starts them.

type temporalRoleCommand struct {
	Role       string `required:"" enum:"frontend,history,matching,worker" help:"What the process does."`
	Listen     string `required:"" help:"Address of its gRPC interface."`
	Membership string `required:"" help:"Address where the processes of the server find each other."`
	Frontend   string `required:"" help:"Address of the frontend."`
	Store      string `required:"" help:"Address of PostgreSQL."`
	Data       string `required:"" placeholder:"DIR" help:"A folder of its own."`
}

// Run serves one role of a Temporal server.
func (c *temporalRoleCommand) Run(e environment) error {
	return e.serve("temporal-"+c.Role, c.Data, func(ctx context.Context, p serving) error {
		return temporal.RunRole(ctx, temporal.RoleOptions{
			Role: c.Role, Listen: c.Listen, Membership: c.Membership, Frontend: c.Frontend, Store: c.Store, Ready: p.ready, Log: p.log,
		})
	})
}

type temporalSchemaCommand struct {
	Store string `required:"" help:"Address of PostgreSQL."`
}

// Run makes the databases of a Temporal server, or brings them up to date.
func (c *temporalSchemaCommand) Run(environment) error { return temporal.Schema(c.Store) }
