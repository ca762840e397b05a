#!/bin/bash
# Runs once, when the database is made: gives it to a role that is no superuser, and lets a second one read it.
# The superuser is left for `docker compose exec`: it cannot log in over the network.
set -euo pipefail

psql -v ON_ERROR_STOP=1 --quiet --no-psqlrc --no-password --username "${POSTGRES_USER:-postgres}" --dbname "$POSTGRES_DB" \
     -v database="$POSTGRES_DB" -v owner="$POSTGRES_DB" -v reader="${POSTGRES_DB}_reader" <<'SQL'
\set owner_password `cat "$OWNER_PASSWORD_FILE"`
\set reader_password `cat "$READER_PASSWORD_FILE"`
CREATE ROLE :"owner" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'owner_password';
CREATE ROLE :"reader" LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD :'reader_password';
ALTER DATABASE :"database" OWNER TO :"owner";
REVOKE ALL ON DATABASE :"database" FROM PUBLIC;
GRANT CONNECT ON DATABASE :"database" TO :"reader";
GRANT pg_read_all_data TO :"reader";
ALTER ROLE :"reader" SET default_transaction_read_only = on;
SQL

sed -i '/^host all all all /d' "$PGDATA/pg_hba.conf"
echo "host $POSTGRES_DB $POSTGRES_DB,${POSTGRES_DB}_reader all scram-sha-256" >>"$PGDATA/pg_hba.conf"
