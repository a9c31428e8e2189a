"""What reading the runs of experiment trackers shares.

To add the tracker `acme`:

1. A package `acme/` beside this one, as `mlflow/` is. Its `__init__.py` gives `class Acme`, which fulfils the protocol
   `Tracker` in `importers/protocol/tracker.py`: `claims` recognises a store, `listed` and `runs` select runs, and each
   run's `read` returns a `Tracked`. `device_tables.py` here builds the rows of a device, `training_metrics.py` those of
   the training, `tracked_runs.py` the whole of them, `read_only_sqlite.py` opens a database. `../trackio.py` is the
   shortest one.
2. One line in the registry: `"acme:Acme"` in `TRACKERS` in `importers/protocol/registry.py`, which makes
   `acme:STORE#RUN` a locator. The kind also stands in `TRACKER_KINDS` in `recording.py`; a test says so. A store that
   is a single file also needs its first bytes in `_STORES` in `importers/sources.py`.
3. A sample and a test: `tests/importers/trackers/acme/`, with a module that writes a small store, as `stores.py` does
   for MLflow, and tests that read it.
"""
