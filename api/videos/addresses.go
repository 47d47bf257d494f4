package videos

import (
	"context"
	"strconv"
	"time"

	"modelrelay/api/edge"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// addresses say where clients find what was made.
type addresses struct {
	// links makes addresses that need no token; nil where the deployment has none.
	links Links
	edge  *edge.Edge
}

// linkLife is how long a link works that needs no token: enough to fetch a video, and of little use to others later.
const linkLife = time.Hour

// outputs are the addresses of a task's videos, in order: links that need no token where the deployment makes some,
// else paths below base for the token that made the task. There are none before the task is completed, and none once
// the videos have expired.
func (a addresses) outputs(ctx context.Context, task tasks.Task, base string) []string {
	if task.State != workflows.Completed || expired(task) {
		return []string{}
	}
	life := linkLife
	if !task.ExpiresAt.IsZero() {
		life = max(time.Second, min(life, time.Until(task.ExpiresAt)))
	}
	urls := make([]string, len(task.Outputs))
	for index, output := range task.Outputs {
		if a.links != nil {
			link, err := a.links.Presign(ctx, output.Object, life)
			if err == nil {
				urls[index] = link
				continue
			}
			a.edge.Log().WarnContext(ctx, "link not made, the gateway's own is answered", "task", task.ID, "error", err)
		}
		urls[index] = base + "/v1/videos/" + task.ID + "/content"
		if index > 0 {
			urls[index] += "?index=" + strconv.Itoa(index)
		}
	}
	return urls
}
