create table alembic_version (version_num varchar(32) not null);
create table experiments (experiment_id integer primary key, name varchar(256), artifact_location varchar(256),
    lifecycle_stage varchar(32));
create table runs (run_uuid varchar(32) primary key, name varchar(250), status varchar(9), start_time bigint,
    end_time bigint, lifecycle_stage varchar(20), artifact_uri varchar(200), experiment_id integer);
create table params (key varchar(250), value varchar(8000), run_uuid varchar(32), primary key (key, run_uuid));
create table tags (key varchar(250), value varchar(8000), run_uuid varchar(32), primary key (key, run_uuid));
create table metrics (key varchar(250), value float, timestamp bigint, run_uuid varchar(32), step bigint,
    is_nan boolean, primary key (key, timestamp, step, run_uuid, value, is_nan));
create table latest_metrics (key varchar(250), value float, timestamp bigint, step bigint, is_nan boolean,
    run_uuid varchar(32), primary key (key, run_uuid));
create index index_metrics_run_uuid on metrics (run_uuid);
insert into alembic_version values ('acf3f17fdcc7');
