package cli

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage/audit"
)

// note writes into the audit log what a command did, or tried and failed with err, and returns err. Commands that only read
// leave nothing there.
func note(ctx context.Context, client redis.UniversalClient, what, subject string, changes []audit.Change, err error) error {
	entry := audit.Entry{By: audit.CLI, Who: string(audit.CLI), What: what, Subject: subject, Changes: changes}
	if err != nil {
		entry.Reason, entry.Changes = err.Error(), nil
	}
	entry.From, _ = os.Hostname() // "" where the system does not say
	audit.New(client, nil).Record(ctx, entry)
	return err
}
