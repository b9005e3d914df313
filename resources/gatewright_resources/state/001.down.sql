-- Takes version 1 back, with everything that it held.

DROP FUNCTION list_sessions(), delete_session(text), let_go_session(text, text), hold_session(text, text),
  save_session(text, bigint, text), find_session(text), kept_outcome(text), keep_outcome(text, text), living(text), end_process(text), beat(text, text), table_changed(text, text),
  delete_row(text, text, text), put_row(text, text, text, text, text, text, float8, text), hold_table(text),
  table_rows(text), table_version(text);
DROP TABLE sessions, outcomes, processes, items, tables;
DROP FUNCTION claimed_rows(text), session_rows(text, bigint), head(text, int),
  append(text, int, bigint, text, text[], text[], text[], text[], text[], text[], text[], text[], text[], bytea),
  hold(text[]), open_epoch(text), enroll(text), introduce(text, text, bytea), open_day(date),
  give_back(text[], float8[], bigint[], float8), take(text[], bigint[], float8[], bigint[]),
  tidy(text, float8, float8), hold_rates(text[]), peek(text, float8), window_of(text, float8, float8), digest_key();
DROP TABLE rows, heads, writers, starts, rates, secrets, members CASCADE;
DROP FUNCTION tenant();
