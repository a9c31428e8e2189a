"""From a path to a recording: which importer reads it, which files belong together, and one run read whole.

Imports every other room; importers are loaded by name.
A new importer is one line in the registry in `protocol/registry.py`.
"""
