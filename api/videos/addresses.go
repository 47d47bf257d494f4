package videos

import (
	"context"
	"strconv"
	"time"

	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// linkTTL is the lifetime of a link: enough to download a video, and too short for misuse.
const linkTTL = time.Hour

// addresses returns the addresses of a task's outputs, in order: links that require no token if the deployment has them, else paths below
// base for the token of the task. It returns none before the task is completed and after the outputs have expired.
func (s *Service) addresses(ctx context.Context, task tasks.Task, base string) []string {
	if task.State != workflows.Completed || task.Expired() {
		return []string{}
	}
	life := linkTTL
	if !task.ExpiresAt.IsZero() {
		life = max(time.Second, min(life, time.Until(task.ExpiresAt)))
	}
	urls := make([]string, len(task.Outputs))
	for index, output := range task.Outputs {
		if s.links != nil {
			link, err := s.links.Presign(ctx, output.Object, life)
			if err == nil {
				urls[index] = link
				continue
			}
			s.edge.Log().WarnContext(ctx, "no link made, the answer has the gateway's own address", "task", task.ID, "error", err)
		}
		urls[index] = base + "/v1/videos/" + task.ID + "/content"
		if index > 0 {
			urls[index] += "?index=" + strconv.Itoa(index)
		}
	}
	return urls
}
