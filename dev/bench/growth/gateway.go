package growth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/kernel"
	"modelrelay/dev/bench/stage"
)

// gateway is one process of the product.
type gateway struct {
	*stage.Child

	metrics, config string
}

// cpu is the CPU time of the process so far, in seconds.
func (g *gateway) cpu() (float64, error) {
	took, err := kernel.CPUTime(g.PID())
	return took.Seconds(), err
}

// start starts a gateway and returns when it answers.
func (b *bench) start(ctx context.Context, config func(listen, metrics string) []byte) (*gateway, error) {
	listen, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	metrics, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	b.gateways++
	file, err := b.WriteConfig(fmt.Sprintf("growth-%d.yaml", b.gateways), config(listen, metrics))
	if err != nil {
		return nil, err
	}
	child, err := b.Start(ctx, &stage.Child{Name: "gateway", Addr: listen}, b.Answers("/healthz"),
		b.GatewayBinary(), "serve", "--worker=false", "--config", file)
	return &gateway{Child: child, metrics: metrics, config: file}, err
}

// config has n channels, each with models of its own.
func (b *bench) config(listen, metrics, redis string, n int) []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, `listen: %s
metrics: {listen: %q}
log: {level: warn}
admin_key: %s
redis: {url: redis://%s/0}
temporal: {address: %s}
tokens:
  - {name: bench, key: %s}
channels:
`, listen, metrics, adminKey, redis, stage.Nowhere, stage.ClientKey)
	for channel := range n {
		var models []string
		for i := range modelsOfChannel {
			models = append(models, model(channel*modelsOfChannel+i)+": gpt-4o")
		}
		fmt.Fprintf(&text, "  - {name: channel-%05d, vendor: openai, base_url: http://%s/openai/v1, keys: [%s], models: {%s}}\n",
			channel, b.Upstream.Addr, stage.UpstreamKey, strings.Join(models, ", "))
	}
	return text.Bytes()
}

func model(i int) string { return fmt.Sprintf("model-%06d", i) }

// reload adds a model to the configuration and waits until clients can use it.
func (b *bench) reload(ctx context.Context, g *gateway, n int) (ms, cpu float64, err error) {
	text, err := os.ReadFile(g.config)
	if err != nil {
		return 0, 0, err
	}
	before, err := g.cpu()
	if err != nil {
		return 0, 0, err
	}
	const more = "model-more"
	changed := bytes.Replace(text, []byte("models: {"), []byte("models: {"+more+": gpt-4o, "), 1)
	began := time.Now()
	if _, err := b.WriteConfig(filepath.Base(g.config), changed); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	for b.call(ctx, http.MethodGet, "http://"+g.Addr+"/v1/models/"+more, stage.ClientKey, nil, nil) != nil {
		if err := stage.Pause(ctx, pollInterval); err != nil {
			return 0, 0, fmt.Errorf("%w: a reload of %d channels is not effective", stage.ErrBroken, n)
		}
	}
	ms = figures.Milliseconds(time.Since(began))
	after, err := g.cpu()
	return ms, after - before, err
}

// read measures bytes and time of an answer.
func (b *bench) read(ctx context.Context, url, name string, cost map[string]float64) error {
	size := 0
	began := time.Now()
	err := b.call(ctx, http.MethodGet, url, adminKey, nil, &size)
	cost[name+"|KB"], cost[name+"|ms"] = float64(size)/1024, figures.Milliseconds(time.Since(began))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", stage.ErrBroken, name, err)
	}
	return nil
}

// chat makes one call.
func (b *bench) chat(ctx context.Context, g *gateway, model string) error {
	body, err := json.Marshal(map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": "Say hello."}}})
	if err != nil {
		return err
	}
	if err := b.call(ctx, http.MethodPost, "http://"+g.Addr+"/v1/chat/completions", stage.ClientKey, body, nil); err != nil {
		return fmt.Errorf("%w: a chat with %s: %w", stage.ErrBroken, model, err)
	}
	return nil
}

// call sends a request. A status other than 200 is an error. size, where not nil, gets the bytes of the answer.
func (b *bench) call(ctx context.Context, method, url, key string, body []byte, size *int) error {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := b.Client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s: %.200s", response.Status, answer)
	}
	if size != nil {
		*size = len(answer)
	}
	return err
}

// redis starts an empty Redis.
func (b *bench) redis(ctx context.Context) (*stage.Child, error) {
	addr, err := stage.FreeAddress()
	if err != nil {
		return nil, err
	}
	child := &stage.Child{Name: "redis", Addr: addr}
	return b.Start(ctx, child, stage.Connects, b.StackBinary(), "redis", "--listen", addr, "--data", b.NewFolder("redis"))
}

// together is how many tokens are written in one round trip.
const together = 1000

// seed writes n tokens, each with the usage of one day, as the gateway writes them: see its manual, Storage.
func seed(ctx context.Context, redis string, n int) error {
	client := goredis.NewClient(&goredis.Options{Addr: redis})
	defer client.Close() //nolint:errcheck // no command is in progress
	day := time.Now().UTC().Format(time.DateOnly)
	for first := 0; first < n; first += together {
		_, err := client.Pipelined(ctx, func(p goredis.Pipeliner) error {
			for i := first; i < min(n, first+together); i++ {
				id, name := fmt.Sprintf("tok_%020d", i), fmt.Sprintf("token %d", i)
				sum := sha256.Sum256([]byte(name))
				hash := hex.EncodeToString(sum[:])
				p.Set(ctx, "mr:token:"+hash, fmt.Sprintf(`{"id":%q,"name":%q,"group":"default"}`, id, name), 0)
				p.HSet(ctx, "mr:tokens", id, hash)
				p.HSet(ctx, "mr:token-names", name, id)
				p.ZAdd(ctx, "mr:token-index", goredis.Z{Member: name + "\x00" + id})
				p.HSet(ctx, "mr:usage:"+day+":"+id, "gpt-4o main requests", 1, "gpt-4o main cost", 5)
				p.ZAdd(ctx, "mr:usage-tokens:"+day, goredis.Z{Member: id})
			}
			p.HIncrBy(ctx, "mr:usage-models:"+day, "gpt-4o requests", int64(min(n, first+together)-first))
			return nil
		})
		if err != nil {
			return fmt.Errorf("write tokens: %w", err)
		}
	}
	return nil
}

func sorted(cost map[string]float64) []string { return slices.Sorted(maps.Keys(cost)) }
