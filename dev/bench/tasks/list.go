package tasks

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"modelrelay/dev/bench/stage"
)

// List returns how long a process that has read nothing needs for its first list of so many ended tasks, 100 at most.
func (b *Bench) List(ctx context.Context, n int) (took time.Duration, err error) {
	d, err := b.deploy(ctx, setting{parts: embedded, apis: 1, workers: 1})
	if err != nil {
		return 0, err
	}
	h, err := b.herd(d, fmt.Sprintf("list of %d", n), lifeModel)
	if err != nil {
		return 0, err
	}
	defer h.close()
	if err := h.create(ctx, creators, n); err != nil {
		return 0, err
	}
	if err := h.await(ctx); err != nil {
		return 0, err
	}
	cold, err := b.gateway(ctx, d, "api-cold", b.Answers("/readyz?for=video"), "serve", "--worker=false")
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+cold.Addr+videosPath+"?limit=100", nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+stage.ClientKey)
	var list struct {
		Data []task `json:"data"`
	}
	began := time.Now()
	err = stage.DoJSON(h.client, request, &list)
	took = time.Since(began)
	if want := min(n, 100); err == nil && len(list.Data) != want {
		err = fmt.Errorf("%w: a list of %d tasks has %d", stage.ErrBroken, want, len(list.Data))
	}
	return took, err
}
