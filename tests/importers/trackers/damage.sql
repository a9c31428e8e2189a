-- What breaks a run of a database of MLflow, a line each; RUN is its id.
update metrics set value = x'00ff'
update metrics set value = 'abc'
update metrics set value = 1e308
update or replace metrics set timestamp = 'abc'
update or replace metrics set timestamp = 1e300
update or replace metrics set step = null
update or replace metrics set key = x'ff'
update runs set name = x'ff00', status = 5, start_time = 'abc', end_time = 9223372036854775807
update runs set artifact_uri = 'file://[::1/x'
insert into params values ('a', null, 'RUN'), ('b', x'ff00', 'RUN'), (5, cast(x'fffe' as text), 'RUN')
update latest_metrics set value = 'abc'
