#!/bin/sh
# Brings the namespace to what the gateway expects: NAMESPACE, RETENTION, and SEARCH_ATTRIBUTES of type Keyword. Runs
# at every start; an existing namespace keeps its tasks. TEMPORAL_ADDRESS says where the server is.
set -eu

attempt=0
until temporal operator cluster health; do
	attempt=$((attempt + 1))
	if [ "$attempt" -ge 60 ]; then
		echo "Temporal does not answer at $TEMPORAL_ADDRESS" >&2
		exit 1
	fi
	sleep 2
done

if temporal operator namespace describe -n "$NAMESPACE" >/dev/null 2>&1; then
	temporal operator namespace update -n "$NAMESPACE" --retention "$RETENTION"
else
	temporal operator namespace create -n "$NAMESPACE" --retention "$RETENTION"
fi

# A new namespace is known to the whole server only after some seconds.
for name in $SEARCH_ATTRIBUTES; do
	attempt=0
	until temporal operator search-attribute create -n "$NAMESPACE" --name "$name" --type Keyword; do
		attempt=$((attempt + 1))
		if [ "$attempt" -ge 30 ]; then
			exit 1
		fi
		sleep 1
	done
done
