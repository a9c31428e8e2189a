"""What 0.2.0 wrote still opens, and what it said of it still holds: JSON values and exit codes, but no sentences.

A difference that is meant stands in `accepted.tsv`: a pattern of what the test prints before the colon, a tab, why.
"""

import gzip
import json
import math
import shutil
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from tests.golden.conftest import HERE, night_result
from tests.support.program import Program

ACCEPTED = [line.split("\t")[0] for line in (HERE.parent / "accepted.tsv").read_text(encoding="utf-8").splitlines()]
SENTENCES = {
    *("check", "do", "general_reason", "headroom_source", "line", "note", "notes", "observed", "reason"),
    *("recommendation", "risk", "statistic", "suggestion", "summary", "title", "when"),
}
"""Keys that hold English: only whether there is any is compared."""


def find_differences(path: str, then: Any, now: Any) -> Iterator[str]:
    """Yield where a value of 0.2.0 is gone or differs; new keys are none."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key, value in then.items():
            where = f"{path}.{key}"
            if key not in now:
                yield f"{where}: gone"
            elif key in SENTENCES or (key == "source" and " " in str(value)):
                yield from () if bool(value) == bool(now[key]) else [f"{where}: {value!r} became {now[key]!r}"]
            else:
                yield from find_differences(where, value, now[key])
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from find_differences(f"{path}[{number}]", one, other)
    elif isinstance(then, float | int) and isinstance(now, float | int) and type(then) is not bool:
        if not math.isclose(then, now, rel_tol=1e-9):
            yield f"{path}: {then} became {now}"
    elif then != now:
        yield f"{path}: {then!r} became {now!r}"


def read_expected(group: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress((HERE / f"{group}.json.gz").read_bytes()))
    return found


def report_differences(group: str, results: dict[str, Any]) -> None:
    expected = read_expected(group)
    for each in expected.values():
        del each["arguments"]
    found = list(find_differences(group, expected, results))
    left = [each for each in found if not any(fnmatchcase(each.partition(": ")[0], pattern) for pattern in ACCEPTED)]
    assert not left, f"{len(left)} differences\n" + "\n".join(left[:40])


@pytest.mark.parametrize("group", ["runs", "compare", "check", "fleet"])
def test_what_0_2_0_said_still_holds(gpureport: Program, group: str) -> None:
    results = {}
    for name, then in read_expected(group).items():
        done = gpureport(*then["arguments"])
        output = json.loads(done.out) if done.out.startswith("{") else None
        results[name] = {"exit_code": done.code, "output": output}
    report_differences(group, results)


@pytest.mark.slow
def test_each_night_after_those_that_0_2_0_recorded(gpureport: Program, place: Path) -> None:
    history = place / ".gpureport" / "history"
    recorded = {file.name: file.read_bytes() for file in history.iterdir()}
    results = {}
    for name, then in read_expected("nightly").items():
        shutil.rmtree(history)
        history.mkdir()
        for file, content in recorded.items():
            if file < f"2026-04-{name}":
                (history / file).write_bytes(content)
        code = gpureport(*then["arguments"]).code
        output = json.loads(json.dumps(night_result(place, f"2026-04-{name}"), default=str))
        results[name] = {"exit_code": code, "output": output}
    report_differences("nightly", results)
