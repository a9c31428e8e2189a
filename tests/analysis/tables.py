"""Tables of checks: a recording in, findings or reasons out; what does not agree is listed with the name of its row."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest

from gpureport.testing import START, Analysis, Finding, Recording, analyze, findings_of, recording, unjudged

Table = Mapping[str, Any]
"""Rows by name: a recording where nothing is found; a `want` of it for one finding, or with a list of them for several;
with a text why it is not assessed: a code, behind a device where it is not of the run, and maybe a metric to record."""


def rec(**series: Any) -> Recording:
    """Return a recording made by hand, as `gpureport.testing.recording` does."""
    return recording(**series)


class Want(dict[str, Any]):
    """What a finding must be, in a recording where it is the only one of its kind."""

    run: Recording | Analysis


def want(run: Recording | Analysis | None = None, /, **facts: Any) -> Want:
    """Return what a finding must be.

    Facts are `gpus` ("0,1", "" for the whole job), `spans` (to `within` seconds, 1 by default), `lost` (to `near`, 2%
    or 1 s by default; None is not known), `cause`, `severity`, `confidence`, `samples`, `period` (to 2%), `length` (of
    all intervals together, to `within`), `steps` (the names that come first), `ruled_out` (how many explanations), and
    `evidence`, by metric or statistic one or several values.
    """
    made = Want(facts)
    if run is not None:
        made.run = run
    return made


def _near(facts: Want, name: str) -> Any:
    value, within, near = facts[name], facts.get("within", 1.0), facts.get("near")
    if name == "spans":
        return [pytest.approx(pair, abs=within) for pair in value]
    if name == "length":
        return pytest.approx(value, abs=within)
    if name in {"lost", "period"} and value is not None:
        return pytest.approx(value, rel=None if near else 0.02, abs=near or 1.0)
    return value


def _read(one: Finding, name: str, facts: Want) -> Any:
    readers: dict[str, Any] = {
        "gpus": lambda: ",".join(device.removeprefix("gpu:") for device in one.devices),
        "spans": lambda: [((part.start - START) / 1e6, (part.end - START) / 1e6) for part in one.intervals],
        "length": lambda: sum(part.seconds for part in one.intervals),
        "lost": lambda: one.lost_gpu_seconds,
        "period": lambda: one.period_seconds,
        "steps": lambda: [step.name for step in one.steps][: len(facts["steps"])],
        "ruled_out": lambda: len(one.ruled_out),
    }
    return readers[name]() if name in readers else getattr(one, name)


def _disagreements(one: Finding, facts: Want) -> Iterable[str]:
    for name in facts.keys() - {"within", "near", "evidence"}:
        if (got := _read(one, name, facts)) != _near(facts, name):
            yield f"{name} is {got!r}, not {facts[name]!r}"
    for what, values in facts.get("evidence", {}).items():
        said = [pytest.approx(e.observed, rel=0.05, abs=0.01) for e in one.evidence if what in {e.metric, e.statistic}]
        if any(each not in said for each in np.atleast_1d(values).tolist()):
            yield f"evidence of {what} is {said}, not {values}"


def _unassessed(analysis: Analysis, kind: str, text: str, metric: str) -> Iterable[str]:
    entries, (code, *device) = unjudged(analysis, kind), text.split()[::-1]
    if [(entry.device, entry.code) for entry in entries] != [(device[0] if device else None, code)]:
        yield f"{[(entry.device, entry.code) for entry in entries]}, not {text}"
    if [entry for entry in entries if metric and metric not in entry.metrics]:
        yield f"{metric} is not asked for"
    if [entry for entry in entries if not entry.recording and code != "gpu_not_in_table"]:
        yield "nothing is said to record"


def check(kind: str, table: Table) -> None:
    """Check what is found of a kind in each recording, or why it is not assessed."""
    wrong: list[str] = []
    for name, row in table.items():
        run, wanted, *metric = row if isinstance(row, tuple) else (row.run, row) if isinstance(row, Want) else (row, [])
        analysis = run if isinstance(run, Analysis) else analyze(run)
        expected = [wanted] if isinstance(wanted, Want) else [] if isinstance(wanted, str) else wanted
        findings = findings_of(analysis, kind)
        if isinstance(wanted, str):
            wrong += [f"{name}: {each}" for each in _unassessed(analysis, kind, wanted, "".join(metric))]
        if len(findings) != len(expected):
            wrong.append(f"{name}: {len(findings)} findings, not {len(expected)}")
        else:
            both = zip(findings, expected, strict=True)
            wrong += [f"{name}: {each}" for one, facts in both for each in _disagreements(one, facts)]
    assert not wrong, "\n".join(wrong)
