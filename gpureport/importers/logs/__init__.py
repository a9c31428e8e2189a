"""One package a program that writes logs.

An importer imports the rooms beside `logs`, never another importer.
A new importer: one package here, one line in the registry in `protocol/registry.py`, one sample, and pairs of a log and
what is read of it in `tests/readers/pairs`.
Optional: a writer of made-up logs in `tests/samples/other_tools.py` with its line in `WRITERS` (`generate.py`) and a
scenario (`scenarios.py`), and small logs in `tests/support/logs.py` for `tests/fuzz/targets.py`.
"""
