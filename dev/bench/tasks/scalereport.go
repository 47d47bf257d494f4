package tasks

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
	"modelrelay/dev/postgres"
)

// tell adds the figures of a run.
func (r *scaleRun) tell(ctx context.Context, report *figures.Report) error {
	jobs, err := r.jobsOf(ctx, r.name())
	if err != nil {
		return err
	}
	if len(jobs) != r.size {
		return fmt.Errorf("%w: the upstream has %d jobs", stage.ErrBroken, len(jobs))
	}
	at, events, err := r.ended(ctx)
	if err != nil {
		return err
	}
	tasks, err := r.tasks(ctx)
	if err != nil {
		return err
	}
	var (
		late        []float64
		polls       []float64
		atUpstream  []span
		firstEnd    = int64(0)
		lastArrived = int64(0)
		lastBegan   = int64(0)
	)
	for _, t := range tasks {
		job, ok := jobs[t.Prompt]
		if !ok {
			continue // of another size
		}
		delete(jobs, t.Prompt)
		if t.Status != "completed" {
			return fmt.Errorf("%w: %q is %s", stage.ErrBroken, t.Prompt, t.Status)
		}
		end, ok := at[t.ID]
		if !ok {
			return fmt.Errorf("%w: Temporal does not list %q", stage.ErrBroken, t.Prompt)
		}
		over := job.Created + job.Duration
		atUpstream = append(atUpstream, span{job.Created, over})
		late = append(late, float64(end.UnixMilli()-over)/1000)
		polls = append(polls, float64(job.Polls))
		if firstEnd == 0 || over < firstEnd {
			firstEnd = over
		}
		lastArrived = max(lastArrived, end.UnixMilli())
		lastBegan = max(lastBegan, job.Created)
	}
	if len(jobs) > 0 {
		return fmt.Errorf("%w: %d tasks are lost", stage.ErrBroken, len(jobs))
	}
	n := float64(r.size)
	r.coming = n / max(1, float64(lastBegan-r.began.UnixMilli())/1000)
	load := fmt.Sprintf("%d tasks at once", r.size)
	add := func(figure, unit string, value float64) {
		report.AddOne(load, figure, unit, value, nil)
	}
	add("created a second", "1/s", r.rate())
	add("create p50", "ms", figures.Milliseconds(figures.Quantile(r.creates, 0.50)))
	add("create p99", "ms", figures.Milliseconds(figures.Quantile(r.creates, 0.99)))
	add("creates asked again", "", float64(r.refused))
	add("submitted a second", "1/s", r.coming)
	add("most at the upstream", "", float64(most(atUpstream)))
	add("completed a second, from the first job's end on", "1/s", n/(float64(lastArrived-firstEnd)/1000))
	add("from a job's end to completed p50", "s", figures.Quantile(late, 0.50))
	add("from a job's end to completed p99", "s", figures.Quantile(late, 0.99))
	add("polls of a task p50", "", figures.Quantile(polls, 0.50))
	add("history events p50", "", float64(figures.Quantile(events, 0.50)))
	total := 0.0
	var most struct {
		group string
		ms    float64
	}
	for _, group := range groups() {
		took, ok := r.cpu[group]
		if !ok {
			continue
		}
		ms := figures.Milliseconds(took) / n
		add("CPU of a task, "+group, "ms", ms)
		if group != "upstream" {
			total += ms
			if ms > most.ms {
				most.group, most.ms = group, ms
			}
		}
	}
	add("CPU of a task, all but the upstream", "ms", total)
	add("most of it, "+most.group, "%", 100*most.ms/cmp.Or(total, 1))
	add("cores in use, of the machine's", "", total*n/1000/r.took.Seconds())
	for _, name := range slices.Sorted(maps.Keys(r.kept)) {
		figure, unit, _ := strings.Cut(name, "|")
		add("of a task, "+figure, unit, r.kept[name]/n)
	}
	api, worker, err := r.memories()
	if err != nil {
		return err
	}
	add("API, most RSS of one", "MB", figures.Megabytes(api))
	add("worker, most RSS of one", "MB", figures.Megabytes(worker))
	return nil
}

// tasks are all that the API lists.
func (r *scaleRun) tasks(ctx context.Context) ([]listed, error) {
	h := &herd{Bench: r.Bench, cluster: &cluster{base: "http://" + r.apis[0].Addr}, client: r.Client}
	return h.list(ctx)
}

// stored counts what the stores have: rows and bytes of the database, bytes and commands of Redis, requests and bytes of MinIO.
// The part of a name behind | is its unit.
func (r *scaleRun) stored(ctx context.Context) (map[string]float64, error) {
	kept := make(map[string]float64)
	err := r.storedInRedis(ctx, kept)
	if len(r.sentinels) > 0 {
		err = errors.Join(err, r.storedInPostgres(ctx, kept), r.storedInMinIO(ctx, kept))
	}
	return kept, err
}

func (r *scaleRun) storedInRedis(ctx context.Context, kept map[string]float64) error {
	c := goredis.NewClient(&goredis.Options{Addr: r.redis.Addr})
	defer c.Close() //nolint:errcheck // nothing is pending on it
	for name, what := range map[string]struct{ section, field string }{
		"Redis memory|KB": {"memory", "used_memory"}, "Redis commands|": {"stats", "total_commands_processed"},
	} {
		text, err := c.Info(ctx, what.section).Result()
		if err != nil {
			return fmt.Errorf("ask Redis: %w", err)
		}
		_, rest, _ := strings.Cut(text, "\n"+what.field+":")
		value, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil // an embedded one does not tell
		}
		if strings.HasSuffix(name, "|KB") {
			n /= 1 << 10
		}
		kept[name] = n
	}
	return nil
}

// databases are those of Temporal, with the tables that grow with tasks: the others have no figure.
func databases() map[string][]string {
	return map[string][]string{
		"temporal":            {"executions", "current_executions", "history_node", "history_tree", "timer_info_maps", "activity_info_maps"},
		"temporal_visibility": {"executions_visibility"},
	}
}

func (r *scaleRun) storedInPostgres(ctx context.Context, kept map[string]float64) error {
	addr, err := postgres.Running(filepath.Join(r.Options.Data, "fleet-temporal", "postgres"))
	if err != nil {
		return err
	}
	for database, tables := range databases() {
		if err := storedIn(ctx, kept, addr, database, tables); err != nil {
			return fmt.Errorf("count the rows of %s: %w", database, err)
		}
	}
	return nil
}

func storedIn(ctx context.Context, kept map[string]float64, addr, database string, tables []string) error {
	conn, err := pgx.Connect(ctx, postgres.URL(addr, database))
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // nothing is pending on it
	var size float64
	if err := conn.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&size); err != nil {
		return err
	}
	kept["database bytes, "+database+"|KB"] = size / (1 << 10)
	for _, table := range tables {
		var rows float64
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&rows); err != nil {
			return err
		}
		kept["rows of "+table+"|"] = rows
	}
	return nil
}

// storedInMinIO reads its metrics, which it serves in Prometheus' text format.
func (r *scaleRun) storedInMinIO(ctx context.Context, kept map[string]float64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.store.Addr+"/minio/v2/metrics/cluster", nil)
	if err != nil {
		return err
	}
	response, err := r.Client.Do(request)
	if err != nil {
		return fmt.Errorf("ask MinIO: %w", err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "} ")
		n, err := strconv.ParseFloat(value, 64)
		switch {
		case err != nil:
		case strings.HasPrefix(name, "minio_s3_requests_total{"):
			kept["S3 requests|"] += n
		case strings.HasPrefix(name, "minio_s3_traffic_received_bytes{"):
			kept["S3 bytes in|KB"] += n / (1 << 10)
		}
	}
	return nil
}
