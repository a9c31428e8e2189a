"""Runs that experiment trackers recorded, and what reading them shares.

A tracker imports the rooms beside `trackers` and the shared modules here, never another tracker.

To add the tracker `acme`:

1. A package `acme/` here. Its `__init__.py` holds `class Acme`, which fulfils the protocol `Tracker` in
   `importers/protocol/tracker.py`: `claims` recognises a store, `listed` and `runs` select runs, and each run's `read`
   returns a `Tracked`. `device_tables.py` builds the rows of a device, `training_metrics.py` those of the training,
   `read_only_sqlite.py` opens a database.
2. One line in the registry: `"acme"` in `TRACKER_KINDS` in `gpureport/recording.py`. It names the package, the class
   and the beginning of locators, `acme:STORE#RUN`. (A store that is a single file: also how the file begins, in
   `_STORES` in `importers/reading/sources.py`.)
3. A sample and a test: `tests/importers/trackers/acme/`, with a module that writes a small store, as `stores.py` does
   for MLflow, and tests that read it.
"""
