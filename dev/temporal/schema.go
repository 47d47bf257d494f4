package temporal

import (
	"fmt"
	"strings"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
)

// visibility is the table of executions that lists and counts read. A task writes its row seven times, and the server's own
// schema keeps fifty-eight indexes and two full-text tables of it, nearly all of columns that a gateway's executions leave empty.
const visibility = "executions_visibility"

// unused are the indexes of visibility by columns that neither the gateway nor the UI's usual lists ask for. Without them
// such a query reads all rows of its namespace, which a development server can do.
func unused() []string {
	names := strings.Fields(`execution_time history_length history_size_bytes execution_duration state_transition_count task_queue
		parent_workflow_id parent_run_id root_workflow_id root_run_id batcher_user temporal_scheduled_start_time temporal_schedule_paused
		temporal_namespace_division temporal_pause_info temporal_worker_deployment_version temporal_workflow_versioning_behavior
		temporal_worker_deployment temporal_low_cardinality_keyword_01`)
	for kind, most := range map[string]int{
		"bool": 3, "datetime": 3, "double": 3, "int": 3,
		"temporal_bool": 2, "temporal_datetime": 2, "temporal_double": 2, "temporal_int": 2, "temporal_keyword": 4,
	} {
		for i := range most {
			names = append(names, fmt.Sprintf("%s_%02d", kind, i+1))
		}
	}
	return names
}

// fullText are the full-text tables of visibility with their columns, as the server's schema has them.
func fullText() map[string][]string {
	return map[string][]string{
		visibility + "_fts_text": {"Text01", "Text02", "Text03"},
		visibility + "_fts_keyword_list": {
			"TemporalChangeVersion", "BinaryChecksums", "BuildIds", "TemporalPauseInfo", "TemporalReportedProblems",
			"TemporalUsedWorkerDeploymentVersions", "KeywordList01", "KeywordList02", "KeywordList03", "TemporalKeywordList01",
			"TemporalKeywordList02",
		},
	}
}

// trim makes writing a row of visibility cheap: it drops the unused indexes, and has the full-text tables written only where
// their columns have changed. It may be done again.
func trim(store *config.SQL) error {
	db, err := sql.NewSQLAdminDB(sqlplugin.DbKindVisibility, store, resolver.NewNoopResolver(), log.NewNoopLogger(),
		metrics.NoopMetricsHandler)
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range trimming() {
		if err := db.Exec(statement); err != nil {
			return fmt.Errorf("%.60s: %w", statement, err)
		}
	}
	return nil
}

func trimming() []string {
	var all []string
	for _, name := range unused() {
		all = append(all, "DROP INDEX IF EXISTS by_"+name)
	}
	for _, event := range []string{"ai", "ad", "au"} {
		all = append(all, "DROP TRIGGER IF EXISTS "+visibility+"_"+event)
	}
	for table, columns := range fullText() {
		row := func(of string) string { return of + "." + strings.Join(columns, ", "+of+".") }
		names := strings.Join(columns, ", ")
		has := func(of string) string { return fmt.Sprintf("COALESCE(%s) IS NOT NULL", row(of)) }
		changed := fmt.Sprintf("(%s) IS NOT (%s)", row("OLD"), row("NEW"))
		add := fmt.Sprintf("INSERT INTO %s (rowid, %s) VALUES (NEW.rowid, %s);", table, names, row("NEW"))
		// A full-text table whose rows are elsewhere gets the old values of a row, as they were.
		remove := fmt.Sprintf("INSERT INTO %s (%[1]s, rowid, %s) VALUES ('delete', OLD.rowid, %s);", table, names, row("OLD"))
		for _, trigger := range []struct{ name, when, condition, does string }{
			{"ai", "AFTER INSERT", has("NEW"), add},
			{"ad", "AFTER DELETE", has("OLD"), remove},
			{"bu", "BEFORE UPDATE", has("OLD") + " AND " + changed, remove},
			{"au", "AFTER UPDATE", has("NEW") + " AND " + changed, add},
		} {
			all = append(all, fmt.Sprintf("CREATE TRIGGER IF NOT EXISTS %s_%s %s ON %s WHEN %s BEGIN %s END",
				table, trigger.name, trigger.when, visibility, trigger.condition, trigger.does))
		}
	}
	return all
}
