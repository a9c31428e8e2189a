"""Logs and stores of others, no part of the project: an environment variable says where a machine has them."""

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("GPUREPORT_CORPUS") or os.devnull)
"""The folder of genuine logs; a file where there is none, so that nothing is found in it."""

TRACKERS = Path(os.environ.get("GPUREPORT_TRACKERS") or os.devnull)
"""The folder of stores that real trackers wrote; a file where there is none."""

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="GPUREPORT_CORPUS names no folder of genuine logs")

needs_trackers = pytest.mark.skipif(not TRACKERS.is_dir(), reason="GPUREPORT_TRACKERS names no folder of stores")
