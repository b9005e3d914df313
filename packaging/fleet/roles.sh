#!/bin/sh
# Makes the role that gateways connect as, once, in a new database; `compose.yaml` puts it where the image looks for it.
# It owns nothing and may do nothing yet: `gatewright state init` gives it its duties.
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'SQL'
\set password `cat "${SECRETS:-/run/secrets}/gateway-password"`
CREATE ROLE gateway LOGIN PASSWORD :'password';
SQL
