-- Version 1: members, rates, the log with its writers. Carried out as the role gatewright_owner, which nobody logs in as.

CREATE TABLE members (
  login name PRIMARY KEY,
  tenant text NOT NULL CHECK (tenant <> '')
);
CREATE TABLE secrets (tenant text PRIMARY KEY, digest_key bytea NOT NULL CHECK (length(digest_key) = 32));

CREATE FUNCTION tenant() RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  found_tenant text;
BEGIN
  SELECT tenant INTO found_tenant FROM gatewright.members WHERE login = session_user;
  IF found_tenant IS NULL THEN
    RAISE 'the role % is no member of a tenant', session_user USING ERRCODE = 'GW004';
  END IF;
  RETURN found_tenant;
END $$;

CREATE FUNCTION digest_key() RETURNS bytea
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT digest_key FROM gatewright.secrets WHERE tenant = gatewright.tenant()
$$;

-- Rates: `latest_s` is the last moment of a key; the clock never counts as earlier.

CREATE TABLE rates (
  tenant text, key text, latest_s float8 NOT NULL DEFAULT '-infinity', PRIMARY KEY (tenant, key)
);
CREATE TABLE starts (
  tenant text, key text, step_s float8, last_s float8 NOT NULL, calls bigint NOT NULL CHECK (calls > 0),
  PRIMARY KEY (tenant, key, step_s), FOREIGN KEY (tenant, key) REFERENCES rates
);

CREATE FUNCTION window_of(rate_key text, per_s float8, now_s float8)
RETURNS TABLE (left_s float8, calls bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN per_s > 0 THEN last_s + per_s - now_s ELSE 'infinity' END, calls FROM gatewright.starts
  WHERE tenant = gatewright.tenant() AND key = rate_key AND (per_s <= 0 OR last_s > now_s - per_s) ORDER BY last_s
$$;

CREATE FUNCTION peek(rate_key text, per_s float8) RETURNS TABLE (left_s float8, calls bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.* FROM gatewright.window_of(rate_key, per_s, greatest(
    extract(epoch FROM clock_timestamp())::float8,
    (SELECT latest_s FROM gatewright.rates WHERE tenant = gatewright.tenant() AND key = rate_key)
  )) AS one
$$;

-- Locks the rows of the keys in their order, then reads the clock; yields the moment of each.
CREATE FUNCTION hold_rates(rate_keys text[]) RETURNS TABLE (key text, now_s float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
BEGIN
  INSERT INTO gatewright.rates (tenant, key)
    SELECT mine, one FROM unnest(rate_keys) AS one GROUP BY one ORDER BY one ON CONFLICT DO NOTHING;
  PERFORM FROM gatewright.rates AS held
    WHERE held.tenant = mine AND held.key = ANY (rate_keys) ORDER BY held.key FOR UPDATE;
  RETURN QUERY UPDATE gatewright.rates AS held
    SET latest_s = greatest(held.latest_s, extract(epoch FROM clock_timestamp())::float8)
    WHERE held.tenant = mine AND held.key = ANY (rate_keys) RETURNING held.key, held.latest_s;
END $$;

-- Records a start under every rate, or under none: then it yields the place of the first without room, from 1, and the
-- seconds to wait (infinity: for ever).
CREATE FUNCTION take(rate_keys text[], most bigint[], per_s float8[], wanted bigint[])
RETURNS TABLE (place int, wait_s float8)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  moments jsonb;
  now_s float8;
  in_the_way bigint;
  step float8;
BEGIN
  SELECT jsonb_object_agg(held.key, held.now_s) INTO moments FROM gatewright.hold_rates(rate_keys) AS held;
  FOR number IN 1 .. cardinality(rate_keys) LOOP
    now_s := (moments ->> rate_keys[number])::float8;
    SELECT coalesce(sum(one.calls), 0) + wanted[number] - most[number] INTO in_the_way
      FROM gatewright.window_of(rate_keys[number], per_s[number], now_s) AS one;
    IF in_the_way > 0 THEN
      place := number;
      SELECT min(one.left_s) INTO wait_s FROM (
        SELECT counted.left_s, sum(counted.calls) OVER (ORDER BY counted.left_s) AS gone
        FROM gatewright.window_of(rate_keys[number], per_s[number], now_s) AS counted
      ) AS one WHERE one.gone >= in_the_way;
      wait_s := CASE WHEN wanted[number] > most[number] THEN 'infinity' ELSE coalesce(wait_s, 'infinity') END;
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
  FOR number IN 1 .. cardinality(rate_keys) LOOP
    CONTINUE WHEN rate_keys[number] = ANY (rate_keys[number + 1:]);
    now_s := (moments ->> rate_keys[number])::float8;
    step := CASE WHEN most[number] <= 200 OR per_s[number] <= 0 THEN now_s
      ELSE floor(now_s / (per_s[number] / 200)) * (per_s[number] / 200) END;
    INSERT INTO gatewright.starts AS one VALUES (mine, rate_keys[number], step, now_s, wanted[number])
      ON CONFLICT ON CONSTRAINT starts_pkey DO UPDATE
      SET calls = one.calls + excluded.calls, last_s = greatest(one.last_s, excluded.last_s);
    PERFORM gatewright.tidy(rate_keys[number], per_s[number], now_s);
  END LOOP;
END $$;

-- Beyond a thousand, merges a start that is over into the later one beside it, within a fiftieth of its age.
CREATE FUNCTION tidy(rate_key text, per_s float8, now_s float8) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  kept_step float8;
  kept_s float8;
  one record;
BEGIN
  IF per_s <= 0 OR (SELECT count(*) FROM gatewright.starts
      WHERE tenant = mine AND key = rate_key AND last_s <= now_s - per_s) <= 1000 THEN
    RETURN;
  END IF;
  FOR one IN SELECT step_s, last_s, calls FROM gatewright.starts
      WHERE tenant = mine AND key = rate_key AND last_s <= now_s - per_s ORDER BY last_s DESC LOOP
    IF kept_s IS NULL OR kept_s - one.last_s > (now_s - kept_s) / 50 THEN
      kept_step := one.step_s;
      kept_s := one.last_s;
      CONTINUE;
    END IF;
    DELETE FROM gatewright.starts WHERE tenant = mine AND key = rate_key AND step_s = one.step_s;
    UPDATE gatewright.starts SET calls = calls + one.calls
      WHERE tenant = mine AND key = rate_key AND step_s = kept_step;
  END LOOP;
END $$;

-- Takes back the start of a call that never ran: the oldest that counts goes, so that those which stay count as long.
CREATE FUNCTION give_back(rate_keys text[], per_s float8[], given bigint[], ago_s float8) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  moments jsonb;
  now_s float8;
  still bigint;
  one record;
BEGIN
  SELECT jsonb_object_agg(held.key, held.now_s) INTO moments FROM gatewright.hold_rates(rate_keys) AS held;
  FOR number IN 1 .. cardinality(rate_keys) LOOP
    CONTINUE WHEN rate_keys[number] = ANY (rate_keys[number + 1:]) OR (per_s[number] > 0 AND per_s[number] <= ago_s);
    now_s := (moments ->> rate_keys[number])::float8;
    still := given[number];
    FOR one IN SELECT step_s, calls FROM gatewright.starts WHERE tenant = mine AND key = rate_keys[number]
        AND (per_s[number] <= 0 OR last_s > now_s - per_s[number]) ORDER BY last_s LOOP
      EXIT WHEN still <= 0;
      IF one.calls <= still THEN
        DELETE FROM gatewright.starts WHERE tenant = mine AND key = rate_keys[number] AND step_s = one.step_s;
      ELSE
        UPDATE gatewright.starts SET calls = calls - still
          WHERE tenant = mine AND key = rate_keys[number] AND step_s = one.step_s;
      END IF;
      still := still - one.calls;
    END LOOP;
  END LOOP;
END $$;

-- The log: a chain of SHA-256 for each writer and epoch. `at` is the database's clock, `time` that of the writer.

CREATE TABLE writers (
  tenant text,
  writer text CHECK (writer ~ '^writer-[0-9a-f]{16}$'),
  login name NOT NULL,
  name text NOT NULL,
  public_key bytea NOT NULL CHECK (length(public_key) = 32),
  introduced timestamptz NOT NULL DEFAULT clock_timestamp(),
  enrolled_by name,
  enrolled timestamptz,
  PRIMARY KEY (tenant, writer)
);
CREATE TABLE heads (
  tenant text, writer text, epoch int, seq bigint NOT NULL, hash text NOT NULL, signature bytea NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, writer, epoch), FOREIGN KEY (tenant, writer) REFERENCES writers
);
CREATE TABLE rows (
  position bigint GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  tenant text NOT NULL, writer text NOT NULL, epoch int NOT NULL, seq bigint NOT NULL,
  time text NOT NULL, kind text NOT NULL, call_id text NOT NULL, agent text NOT NULL, session text NOT NULL,
  tool text NOT NULL, operation text NOT NULL, body text NOT NULL, hash text NOT NULL, signature bytea,
  PRIMARY KEY (tenant, writer, epoch, seq, at)
) PARTITION BY RANGE (at);
CREATE INDEX rows_position ON rows (tenant, position);
CREATE INDEX rows_session ON rows (tenant, session, position)
  WHERE kind IN ('ToolInvoked', 'ApprovalResolved', 'ToolAbandoned', 'SessionDeleted');
CREATE INDEX rows_claimed ON rows (tenant, call_id) WHERE call_id > 'claim-';

-- Makes the part of the log for a day of UTC. Nobody waits for it: the table joins the others when it is complete.
CREATE FUNCTION open_day(day date) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  part text := 'rows_' || to_char(day, 'YYYYMMDD');
BEGIN
  IF to_regclass('gatewright.' || part) IS NOT NULL THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended('gatewright day', 0));
  IF to_regclass('gatewright.' || part) IS NULL THEN
    EXECUTE format('CREATE TABLE gatewright.%I (LIKE gatewright.rows INCLUDING DEFAULTS)', part);
    EXECUTE format('ALTER TABLE gatewright.%I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('CREATE POLICY owner ON gatewright.%I TO gatewright_owner USING (true) WITH CHECK (true)', part);
    EXECUTE format(
      'ALTER TABLE gatewright.rows ATTACH PARTITION gatewright.%I FOR VALUES FROM (%L) TO (%L)',
      part, day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC'
    );
  END IF;
END $$;

-- Introduces a writer, which an operator has to enroll.
CREATE FUNCTION introduce(writer_id text, writer_name text, key bytea) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  known record;
BEGIN
  INSERT INTO gatewright.writers (tenant, writer, login, name, public_key)
    VALUES (mine, writer_id, session_user, left(writer_name, 200), key) ON CONFLICT DO NOTHING;
  SELECT * INTO known FROM gatewright.writers WHERE tenant = mine AND writer = writer_id;
  IF known.public_key <> key OR known.login <> session_user THEN
    RAISE 'the writer % has another key or login', writer_id USING ERRCODE = 'GW003';
  END IF;
  RETURN known.enrolled IS NOT NULL;
END $$;

-- Lets a writer write, and yields it; nothing for one that has not introduced itself.
CREATE FUNCTION enroll(writer_id text)
RETURNS TABLE (writer text, tenant text, login name, name text, enrolled_by name)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE gatewright.writers AS one SET
    enrolled = coalesce(one.enrolled, clock_timestamp()), enrolled_by = coalesce(one.enrolled_by, session_user)
  WHERE one.tenant = gatewright.tenant() AND one.writer = writer_id
  RETURNING one.writer, one.tenant, one.login, one.name, one.enrolled_by
$$;

-- Begins a chain of the writer and yields its number, the last head before it, and that head's epoch and row.
CREATE FUNCTION open_epoch(writer_id text, OUT epoch int)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  known record;
BEGIN
  SELECT * INTO known FROM gatewright.writers
    WHERE tenant = mine AND writer = writer_id AND login = session_user FOR UPDATE;
  IF known.enrolled IS NULL THEN
    RAISE 'the writer % is not enrolled', writer_id USING ERRCODE = 'GW002';
  END IF;
  SELECT coalesce(max(one.epoch), 0) + 1 INTO open_epoch.epoch FROM gatewright.heads AS one
    WHERE one.tenant = mine AND one.writer = writer_id;
  INSERT INTO gatewright.heads VALUES (mine, writer_id, open_epoch.epoch, 0, repeat('0', 64), '');
  PERFORM gatewright.open_day((clock_timestamp() AT TIME ZONE 'UTC')::date);
END $$;

-- Holds sessions and named calls until the transaction ends, in one order for everybody.
CREATE FUNCTION hold(names text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT pg_advisory_xact_lock(one) FROM (
    SELECT DISTINCT hashtextextended(gatewright.tenant() || chr(10) || name, 1) AS one FROM unnest(names) AS name
    ORDER BY one
  ) AS ordered
$$;

-- Appends rows to the caller's own chain, whose head must be the one that the caller names.
CREATE FUNCTION append(
  writer_id text, in_epoch int, after_seq bigint, after_hash text,
  times text[], kinds text[], call_ids text[], agents text[], sessions text[], tools text[], operations text[],
  bodies text[], hashes text[], head_signature bytea
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  mine text := gatewright.tenant();
  most int := cardinality(hashes);
BEGIN
  PERFORM gatewright.hold(ARRAY(
    SELECT DISTINCT 'session ' || one FROM unnest(sessions) AS one WHERE one <> ''
  ));
  UPDATE gatewright.heads AS head
    SET seq = after_seq + most, hash = hashes[most], signature = head_signature, at = clock_timestamp()
    FROM gatewright.writers AS known
    WHERE head.tenant = mine AND head.writer = writer_id AND head.epoch = in_epoch
      AND head.seq = after_seq AND head.hash = after_hash
      AND known.tenant = mine AND known.writer = writer_id AND known.login = session_user
      AND known.enrolled IS NOT NULL;
  IF NOT FOUND THEN
    RAISE 'the end of the chain %/% is not where its writer left it', writer_id, in_epoch USING ERRCODE = 'GW001';
  END IF;
  PERFORM gatewright.open_day((clock_timestamp() AT TIME ZONE 'UTC')::date);
  INSERT INTO gatewright.rows (tenant, writer, epoch, seq, time, kind, call_id, agent, session, tool, operation, body,
      hash, signature)
    SELECT mine, writer_id, in_epoch, after_seq + number, times[number], kinds[number], call_ids[number],
      agents[number], sessions[number], tools[number], operations[number], bodies[number], hashes[number],
      CASE WHEN number = most THEN head_signature END
    FROM generate_series(1, most) AS number;
END $$;

CREATE FUNCTION head(writer_id text, in_epoch int) RETURNS TABLE (seq bigint, hash text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.seq, one.hash FROM gatewright.heads AS one
  WHERE one.tenant = gatewright.tenant() AND one.writer = writer_id AND one.epoch = in_epoch
$$;

-- The rows of a session that may count, each with the decision that was committed with it.
CREATE FUNCTION session_rows(session_name text, after_position bigint)
RETURNS TABLE (
  "position" bigint, "time" text, kind text, agent text, tool text, operation text, call_id text, body text,
  decision text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.position, one.time, one.kind, one.agent, one.tool, one.operation, one.call_id, one.body, (
    SELECT later.body FROM gatewright.rows AS later
    WHERE later.tenant = one.tenant AND later.writer = one.writer AND later.epoch = one.epoch
      AND later.seq > one.seq AND later.seq < one.seq + 32 AND later.call_id = one.call_id
      AND later.kind = 'PolicyDecision' ORDER BY later.seq LIMIT 1
  ) FROM gatewright.rows AS one
  WHERE one.tenant = gatewright.tenant() AND one.session = session_name AND one.position > after_position
    AND one.kind IN ('ToolInvoked', 'ApprovalResolved', 'ToolAbandoned', 'SessionDeleted')
  ORDER BY one.position
$$;

CREATE FUNCTION claimed_rows(call text)
RETURNS TABLE (
  "position" bigint, "time" text, kind text, call_id text, agent text, session text, tool text, operation text,
  body text, hash text
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.position, one.time, one.kind, one.call_id, one.agent, one.session, one.tool, one.operation, one.body,
    one.hash
  FROM gatewright.rows AS one
  WHERE one.tenant = gatewright.tenant() AND one.call_id = call AND one.call_id > 'claim-' ORDER BY one.position
$$;

-- Rows that come and go: questions, answers and standing approvals. `version` counts the changes of a table of them.

CREATE TABLE tables (tenant text, name text, version bigint NOT NULL DEFAULT 0, PRIMARY KEY (tenant, name));
CREATE TABLE items (
  tenant text, name text, kind text, row_id text, agent text NOT NULL, digest text NOT NULL, owner text NOT NULL,
  until_s float8, body text NOT NULL, PRIMARY KEY (tenant, name, kind, row_id),
  FOREIGN KEY (tenant, name) REFERENCES tables
);

CREATE FUNCTION table_version(table_name text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(
    (SELECT version FROM gatewright.tables WHERE tenant = gatewright.tenant() AND name = table_name), 0
  )
$$;

CREATE FUNCTION table_rows(table_name text)
RETURNS TABLE (kind text, row_id text, agent text, digest text, owner text, until_s float8, body text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.kind, one.row_id, one.agent, one.digest, one.owner, one.until_s, one.body FROM gatewright.items AS one
  WHERE one.tenant = gatewright.tenant() AND one.name = table_name ORDER BY one.kind, one.row_id
$$;

-- Excludes other writers of the table until the transaction ends.
CREATE FUNCTION hold_table(table_name text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO gatewright.tables AS one (tenant, name) VALUES (gatewright.tenant(), table_name)
  ON CONFLICT ON CONSTRAINT tables_pkey DO UPDATE SET version = one.version
$$;

-- Whoever runs agents may ask, spend, and stop; to answer, to let an answer stand, and to end a stop takes that duty.
CREATE FUNCTION put_row(
  table_name text, row_kind text, id text, of_agent text, of_digest text, of_owner text, until float8, content text
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF row_kind IN ('answer', 'grant') AND NOT pg_has_role(session_user, 'gatewright_answerer', 'USAGE') THEN
    RAISE 'the role % may not answer questions', session_user USING ERRCODE = 'GW005';
  END IF;
  PERFORM gatewright.hold_table(table_name);
  INSERT INTO gatewright.items VALUES
    (gatewright.tenant(), table_name, row_kind, id, of_agent, of_digest, of_owner, until, content)
  ON CONFLICT ON CONSTRAINT items_pkey DO UPDATE SET agent = excluded.agent, digest = excluded.digest,
    owner = excluded.owner, until_s = excluded.until_s, body = excluded.body;
  PERFORM gatewright.table_changed(table_name, id);
END $$;

CREATE FUNCTION delete_row(table_name text, row_kind text, id text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF row_kind = 'stop' AND NOT pg_has_role(session_user, 'gatewright_answerer', 'USAGE') THEN
    RAISE 'the role % may not let stopped agents go on', session_user USING ERRCODE = 'GW005';
  END IF;
  PERFORM gatewright.hold_table(table_name);
  DELETE FROM gatewright.items
    WHERE tenant = gatewright.tenant() AND name = table_name AND kind = row_kind AND row_id = id;
  PERFORM gatewright.table_changed(table_name, id);
END $$;

-- Counts the change, and wakes those who wait for one; they hear ids and nothing else.
CREATE FUNCTION table_changed(table_name text, id text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE gatewright.tables SET version = version + 1 WHERE tenant = gatewright.tenant() AND name = table_name;
  SELECT pg_notify('gatewright_' || md5(gatewright.tenant()), table_name || ' ' || left(id, 200))
$$;

-- Sessions between runs of a program: each save names the version before it, and a holder has a lease of 30 seconds.

CREATE TABLE sessions (
  tenant text, name text, version bigint NOT NULL DEFAULT 0, body text NOT NULL DEFAULT '',
  holder text NOT NULL DEFAULT '', until timestamptz NOT NULL DEFAULT '-infinity', PRIMARY KEY (tenant, name)
);

CREATE FUNCTION find_session(session_name text) RETURNS TABLE (version bigint, body text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT one.version, one.body FROM gatewright.sessions AS one
  WHERE one.tenant = gatewright.tenant() AND one.name = session_name AND one.version > 0
$$;

CREATE FUNCTION save_session(session_name text, after_version bigint, content text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO gatewright.sessions (tenant, name) VALUES (gatewright.tenant(), session_name) ON CONFLICT DO NOTHING;
  UPDATE gatewright.sessions SET version = after_version + 1, body = content
    WHERE tenant = gatewright.tenant() AND name = session_name AND version = after_version;
  RETURN FOUND;
END $$;

CREATE FUNCTION hold_session(session_name text, by_holder text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO gatewright.sessions (tenant, name) VALUES (gatewright.tenant(), session_name) ON CONFLICT DO NOTHING;
  UPDATE gatewright.sessions SET holder = by_holder, until = clock_timestamp() + interval '30 seconds'
    WHERE tenant = gatewright.tenant() AND name = session_name
      AND (holder IN ('', by_holder) OR until < clock_timestamp());
  RETURN FOUND;
END $$;

CREATE FUNCTION let_go_session(session_name text, by_holder text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  UPDATE gatewright.sessions SET holder = '', until = '-infinity'
    WHERE tenant = gatewright.tenant() AND name = session_name AND holder = by_holder;
  DELETE FROM gatewright.sessions
    WHERE tenant = gatewright.tenant() AND name = session_name AND holder = '' AND version = 0
$$;

CREATE FUNCTION delete_session(session_name text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE gatewright.sessions SET version = 0, body = ''
    WHERE tenant = gatewright.tenant() AND name = session_name AND version > 0;
  RETURN FOUND;
END $$;

CREATE FUNCTION list_sessions() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT name FROM gatewright.sessions WHERE tenant = gatewright.tenant() AND version > 0 ORDER BY name
$$;

-- The outcomes of calls that their program named, for a week.

CREATE TABLE outcomes (
  tenant text, call_id text, at timestamptz NOT NULL, body text NOT NULL, PRIMARY KEY (tenant, call_id)
);
CREATE INDEX outcomes_at ON outcomes (tenant, at);

CREATE FUNCTION keep_outcome(call text, outcome text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM gatewright.outcomes
    WHERE tenant = gatewright.tenant() AND at < clock_timestamp() - interval '7 days' AND call_id <> call;
  INSERT INTO gatewright.outcomes VALUES (gatewright.tenant(), call, clock_timestamp(), outcome)
    ON CONFLICT ON CONSTRAINT outcomes_pkey DO UPDATE SET at = excluded.at, body = excluded.body
$$;

CREATE FUNCTION kept_outcome(call text) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT body FROM gatewright.outcomes
  WHERE tenant = gatewright.tenant() AND call_id = call AND at >= clock_timestamp() - interval '7 days'
$$;

-- The processes that others depend on. One that has said nothing for two minutes is gone: a database may be away for one.

CREATE TABLE processes (
  tenant text, owner text, role text NOT NULL, seen timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant, owner)
);

CREATE FUNCTION beat(owner_id text, in_role text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  INSERT INTO gatewright.processes VALUES (gatewright.tenant(), owner_id, in_role, clock_timestamp())
  ON CONFLICT ON CONSTRAINT processes_pkey DO UPDATE SET seen = excluded.seen
$$;

CREATE FUNCTION end_process(owner_id text) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DELETE FROM gatewright.processes WHERE tenant = gatewright.tenant()
    AND (owner = owner_id OR seen < clock_timestamp() - interval '1 day')
$$;

CREATE FUNCTION living(in_role text) RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT owner FROM gatewright.processes WHERE tenant = gatewright.tenant() AND role = in_role
    AND seen > clock_timestamp() - interval '120 seconds'
$$;

-- Who may do what. Everything belongs to gatewright_owner, and nobody else may touch a table, except to read the log.

DO $$
DECLARE
  one text;
BEGIN
  FOREACH one IN ARRAY ARRAY['members', 'secrets', 'rates', 'starts', 'writers', 'heads', 'rows', 'tables', 'items', 'processes', 'outcomes', 'sessions'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', one);
    EXECUTE format('CREATE POLICY owner ON %I TO gatewright_owner USING (true) WITH CHECK (true)', one);
  END LOOP;
END $$;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA gatewright FROM PUBLIC;
CREATE POLICY reader ON rows FOR SELECT TO gatewright_reader USING (tenant = (SELECT gatewright.tenant()));
CREATE POLICY reader ON heads FOR SELECT TO gatewright_reader USING (tenant = (SELECT gatewright.tenant()));
CREATE POLICY reader ON writers FOR SELECT TO gatewright_reader USING (tenant = (SELECT gatewright.tenant()));
GRANT SELECT ON rows, heads, writers TO gatewright_reader;
GRANT EXECUTE ON FUNCTION tenant() TO gatewright_gateway, gatewright_reader, gatewright_answerer, gatewright_publisher;
GRANT EXECUTE ON FUNCTION digest_key(), introduce(text, text, bytea), open_epoch(text), hold(text[]), head(text, int),
  append(text, int, bigint, text, text[], text[], text[], text[], text[], text[], text[], text[], text[], bytea)
  TO gatewright_gateway, gatewright_answerer, gatewright_publisher;
GRANT EXECUTE ON FUNCTION peek(text, float8), take(text[], bigint[], float8[], bigint[]),
  give_back(text[], float8[], bigint[], float8), session_rows(text, bigint), claimed_rows(text),
  keep_outcome(text, text), kept_outcome(text),
  find_session(text), save_session(text, bigint, text), hold_session(text, text), let_go_session(text, text),
  delete_session(text), list_sessions() TO gatewright_gateway;
GRANT EXECUTE ON FUNCTION table_version(text), table_rows(text), hold_table(text), beat(text, text), end_process(text),
  living(text), put_row(text, text, text, text, text, text, float8, text), delete_row(text, text, text)
  TO gatewright_gateway, gatewright_answerer;
GRANT EXECUTE ON FUNCTION enroll(text) TO gatewright_publisher;
