#!/bin/sh
# Brings both databases of Temporal to the version of this image. Runs before every start of the server; where there
# is nothing to do it does nothing. SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD and SQL_PLUGIN say where they are.
set -eu

schema() {
	database=$1
	versions=$2
	temporal-sql-tool --database "$database" create-database
	temporal-sql-tool --database "$database" setup-schema -v 0.0
	temporal-sql-tool --database "$database" update-schema --schema-name "$versions"
}

schema temporal postgresql/v12/temporal
schema temporal_visibility postgresql/v12/visibility
