-- A database of Trackio.
create table metrics (run_id text, timestamp text, run_name text, step integer, metrics text);
create table system_metrics (run_id text, timestamp text, run_name text, metrics text);
create table configs (run_id text, run_name text, config text);
