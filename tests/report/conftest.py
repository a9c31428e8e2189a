"""Reports that tests of several formats look at."""

from dataclasses import replace

import pytest

from gpureport.report import build
from gpureport.report.model.report_content import Report
from tests.report import examples

HOSTILE = "<script>alert(1)</script> $\\frac{x$ \x1b[31mred\x1b[0m | `code`\nnext \x07"
"""A run name that is markup, mathematics, escape code, table cell and several lines at once."""


def _build(*runs: examples.Pair, command: str = "gpureport report a.csv") -> Report:
    return build(list(runs), title=None, command=command, gpu_hour_price=2.5, version="0.1.0")


@pytest.fixture
def report() -> Report:
    """Return the report of one run with idle gaps, throttling, a dirty log and two kinds not judged."""
    gaps = tuple(examples.idle_gap(f"gpu:{gpu}", at, at + 20) for gpu in (0, 1) for at in (100, 200, 300))
    info = examples.with_gap(examples.run())
    return _build(examples.pair(info, (*gaps, examples.throttling("gpu:1", 400, 500)), examples.NOT_JUDGED))


@pytest.fixture
def steps() -> Report:
    """Return the report of three steps."""
    gap = examples.idle_gap("gpu:0", 100, 160)
    runs = [examples.pair(examples.run(name), (gap,)) for name in ("baseline", "bf16", "8 workers")]
    return _build(*runs)


@pytest.fixture
def many() -> Report:
    """Return the report of 64 GPUs."""
    return _build(examples.pair(examples.run(gpus=64)))


@pytest.fixture
def clean() -> Report:
    """Return the report of a run without findings, in which two kinds could not be judged."""
    return _build(examples.pair(examples.run(), (), examples.NOT_JUDGED, idle=0.0))


@pytest.fixture
def hostile() -> Report:
    """Return a report in which every text from outside tries to be more than text."""
    info = examples.run(HOSTILE, model=HOSTILE, step=HOSTILE)
    finding = replace(
        examples.idle_gap("gpu:0", 10, 40, summary=HOSTILE), kind=HOSTILE, cause=HOSTILE, recommendation=HOSTILE
    )
    missing = replace(examples.NOT_JUDGED[0], reason=HOSTILE, recording=HOSTILE)
    return _build(examples.pair(info, (finding,), (missing,)), command=HOSTILE)
