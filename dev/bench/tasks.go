package bench

import (
	"context"
)

func tasks(context.Context, *stage, *Report) error { return nil }
