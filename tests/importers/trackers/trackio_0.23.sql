-- What versions before 0.24 lack: they know a run by its name alone, and wrote texts.
alter table metrics drop column run_id;
alter table system_metrics drop column run_id;
drop table configs;
update metrics set timestamp = replace(timestamp, '+00:00', ''), metrics = cast(metrics as text);
update system_metrics set timestamp = replace(timestamp, '+00:00', ''), metrics = cast(metrics as text);
