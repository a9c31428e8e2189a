"""One package a program that writes logs.

An importer imports the rooms beside `logs`, never another importer.
A new importer: one package here, one line in the registry in `protocol/registry.py`, one sample, one test.
"""
