"""Every importer describes itself, and its sample is recognised by it alone."""

from pathlib import Path

import pytest

from gpureport.importers.decoding.pieces import head
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import HEAD_BYTES, DescribedSource, Importer
from gpureport.importers.protocol.registry import (
    HOST_IMPORTERS,
    IMPORTERS,
    TRACKERS,
    TRAINING_IMPORTERS,
    Registry,
)
from gpureport.recording import TRACKER_KINDS

SAMPLES = Path(__file__).parents[3] / "sample_logs"
RECOGNISED = [each for each in (*IMPORTERS, *HOST_IMPORTERS) if each.kind != "mapped"]
"""Importers that need no word of a person."""


@pytest.mark.parametrize("registry", [IMPORTERS, HOST_IMPORTERS, TRAINING_IMPORTERS, TRACKERS])
def test_kinds_are_known_without_loading(registry: Registry[DescribedSource]) -> None:
    """A package is named after the kind of its importer, and says what it reads and how it is recognised."""
    assert registry.kinds == tuple(each.kind for each in registry)
    assert all(each.title and each.recognised_by.endswith(".") for each in registry)


@pytest.mark.parametrize("importer", RECOGNISED, ids=lambda importer: importer.kind)
def test_a_sample_is_recognised_by_its_importer_alone(importer: Importer) -> None:
    """The sample that an importer names is one of its kind and of no other."""
    begins = head(RawFile(SAMPLES / importer.sample), HEAD_BYTES)
    assert [each.kind for each in RECOGNISED if each.identify(begins)] == [importer.kind]


def test_samples_exist() -> None:
    """Those that a person must name have one too; stores of trackers are too large for one."""
    assert all((SAMPLES / each.sample).is_file() for each in (*IMPORTERS, *TRAINING_IMPORTERS))


def test_a_recording_knows_the_trackers() -> None:
    """Whether a run was tracked is told by the kind of its source, below the layer of importers."""
    assert set(TRACKERS.kinds) == TRACKER_KINDS
