package tasks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"modelrelay/dev/postgres"
)

// stored counts what the stores hold and have done: rows and bytes of the database, bytes and commands of Redis, requests
// and bytes of MinIO. The part of a name after | is its unit.
func (h *herd) stored(ctx context.Context) (map[string]float64, error) {
	kept := make(map[string]float64)
	err := h.storedInRedis(ctx, kept)
	if h.set.parts == production {
		err = errors.Join(err, h.storedInPostgres(ctx, kept), h.storedInMinIO(ctx, kept))
	}
	return kept, err
}

func (h *herd) storedInRedis(ctx context.Context, kept map[string]float64) error {
	c := goredis.NewClient(&goredis.Options{Addr: h.redis.Addr})
	defer c.Close() //nolint:errcheck // no command is in progress
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
			return nil // an embedded Redis does not report it
		}
		if strings.HasSuffix(name, "|KB") {
			n /= 1 << 10
		}
		kept[name] = n
	}
	return nil
}

// databases are Temporal's, with the tables that grow with tasks.
func databases() map[string][]string {
	return map[string][]string{
		"temporal":            {"executions", "current_executions", "history_node", "history_tree", "timer_info_maps", "activity_info_maps"},
		"temporal_visibility": {"executions_visibility"},
	}
}

func (h *herd) storedInPostgres(ctx context.Context, kept map[string]float64) error {
	addr, err := postgres.Running(filepath.Join(h.temporalData, "postgres"))
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
	defer conn.Close(ctx) //nolint:errcheck // no query is in progress
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

// storedInMinIO reads MinIO's metrics, which are in Prometheus' text format.
func (h *herd) storedInMinIO(ctx context.Context, kept map[string]float64) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.store.Addr+"/minio/v2/metrics/cluster", nil)
	if err != nil {
		return err
	}
	response, err := h.client.Do(request)
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
