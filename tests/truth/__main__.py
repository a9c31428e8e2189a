"""Generates labelled runs, analyses them and prints how well the findings agree with the labels.

Run by hand: `python -m tests.truth [--suite large] [--seed 1 2 3] [--only NAME] [--keep FOLDER]`. With `--keep` the
logs and `truth.json` stay.
"""

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

from gpureport.analysis import RULES
from tests.truth import suite
from tests.truth.scoring import Scores, Tally
from tests.truth.suite import scored


def table(scores: Scores) -> Iterator[str]:
    """Yield the lines of the table."""
    judged = {kind for rule in RULES for kind in rule.kinds} | {"throttle_any"}
    groups = [("all", scores.spans), *((f"{every:g} s", own) for every, own in sorted(scores.by_interval.items()))]
    for group, spans in groups:
        yield f"{group:24}{'labelled':>10}{'time F1':>9}{'events':>8}{'found':>7}{'extra':>7}{'event F1':>10}"
        yield from (_row(name, tally, built=name in judged) for name, tally in spans.items() if _says(tally))
    yield f"{'whole run':24}{'right':>7}{'extra':>7}{'missed':>7}"
    for kind, runs in scores.whole.items():
        where = " ".join([*(f"+{run}" for run in runs.extra), *(f"-{run}" for run in runs.missed)])
        built = "" if kind in judged else " not built"
        yield f"  {kind:22}{runs.right:7}{len(runs.extra):7}{len(runs.missed):7}{built}  {where}"
    for name, tally in scores.spans.items():
        if name in judged and (tally.missed_in or tally.extra_in):
            yield f"  {name}: {' '.join(_counted('-', tally.missed_in) + _counted('+', tally.extra_in))}"
    yield f"traps without a problem: {scores.traps - scores.alarmed}/{scores.traps}"
    yield from (f"  problem  {each}" for each in scores.alarms)
    yield from (f"  warning  {each}" for each in scores.remarks)


def _says(tally: Tally) -> bool:
    return bool(tally.events or tally.extra)


def _row(name: str, tally: Tally, *, built: bool) -> str:
    figures = ["-" if value is None else f"{value:.3f}" for value in (tally.time_f1, tally.event_f1)]
    return (
        f"  {name:22}{tally.labelled:10.0f}{figures[0]:>9}{tally.events:8}{tally.matched:7}{tally.extra:7}"
        f"{figures[1]:>10}" + ("" if built else "  not built")
    )


def _counted(sign: str, runs: list[str]) -> list[str]:
    return [f"{sign}{runs.count(run)} {run}" for run in sorted(set(runs))]


def main() -> None:
    """Generate, analyse and score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--suite", choices=["small", "large"], default="large")
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="several are pooled")
    parser.add_argument("--only", default="", help="scenarios whose name contains this")
    parser.add_argument("--keep", type=Path, help="a folder to write the runs into")
    given = parser.parse_args()
    runs = [each for each in (suite.large() if given.suite == "large" else suite.small()) if given.only in each[0]]
    with tempfile.TemporaryDirectory() as spare:
        folder = given.keep or Path(spare)
        print("\n".join(table(scored(folder, runs, *given.seed))))  # noqa: T201 - its output is its use


if __name__ == "__main__":
    main()
