"""One call per stage after reading: compare runs, check them against rules, and build the page of results."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias
from unittest.mock import patch

from gpureport.analysis import RULES
from gpureport.api import Analysis, Comparison, analyze
from gpureport.api.results import build_content
from gpureport.checks.changes import compare_with_baseline
from gpureport.checks.evaluation import CheckInput, evaluate_policy, step_name
from gpureport.checks.policy import read_policy
from gpureport.comparison.run import SampledRun, build_sampled_run
from gpureport.comparison.training import parse_target, read_goals
from gpureport.findings import Check
from gpureport.importers.reading import Reading
from gpureport.recording import Recording
from gpureport.report import render
from gpureport.report.formats import comparison_json
from gpureport.settings import Settings, check_sections, read_settings
from gpureport.store.store import Store

TODAY = date(2026, 11, 21)
"""The day on which checks are made, which decides whether an acknowledgement still applies."""


def check(
    rules: str | Sequence[str] | Mapping[str, Any] | Path,
    *runs: Recording | Analysis,
    baseline: Sequence[Recording | Analysis] = (),
    target: str | None = None,
) -> tuple[Check, ...]:
    """Return what each rule gives for each run, in the order of the rules; raise SettingsError of one not valid.

    Rules are as `--fail-on` takes them, or a `gpureport.toml` with `[[policy]]`, or its content. Runs of one step label
    are repetitions; changes are measured from the `baseline`, and not assessed without it. A `target` is a value that a
    training metric is to reach, such as `"val_accuracy=0.78"`.
    """
    stated = Settings(file="gpureport.toml", content=dict(rules)) if isinstance(rules, Mapping) else Settings()
    stated = read_settings(rules) if isinstance(rules, Path) else check_sections(stated)
    limits = () if isinstance(rules, Path | Mapping) else [rules] if isinstance(rules, str) else rules
    goals = read_goals(stated).with_overrides((), None if target is None else parse_target(target))
    analyses = [*map(_analysed, runs)]
    checked = [build_sampled_run(run.recording, run) for run in analyses]
    before = [build_sampled_run(run.recording, run) for run in map(_analysed, baseline)]
    steps: dict[str, list[SampledRun]] = {}
    for run in checked:
        steps.setdefault(step_name(run.analysis), []).append(run)
    return evaluate_policy(
        read_policy(stated).with_limits(limits),
        CheckInput(
            runs=tuple(checked),
            goals=goals,
            selected_kinds=frozenset(kind for analysis in analyses for kind in analysis.kinds),
            today=TODAY,
            comparisons={label: compare_with_baseline(before, step, goals) for label, step in steps.items() if before},
        ),
    )


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as `gpureport compare --format json` prints it: gains, groups, study, findings and all."""
    document: dict[str, Any] = json.loads(comparison_json.render(comparison, comparison.by))
    return document


def _analysed(run: Recording | Analysis) -> Analysis:
    return run if isinstance(run, Analysis) else analyze(run)


Results: TypeAlias = Recording | Analysis | Comparison | Sequence[Recording | Analysis]
"""What a page shows; recordings are analysed first."""


def build_page(results: Results, form: str = "txt", title: str = "", *, full: bool = False) -> str:
    """Return the page of one run, of several as steps, or of a comparison, in a form that is text."""
    return build_file(results, form, title, full=full).decode()


def build_file(results: Results, form: str, title: str = "", *, full: bool = False) -> bytes:
    """Return the page as the file that a report writes: `txt` is a terminal, which shows everything if `full`."""
    if isinstance(results, Comparison):
        content = build_content(results, title or None)
    else:
        several = results if isinstance(results, Sequence) else (results,)
        content = build_content([run if isinstance(run, Analysis) else analyze(run) for run in several], title or None)
    return render(content, f".{form}", detail=0 if full else None)


_STAGES: dict[str, tuple[type[Any], str, Callable[..., str]]] = {
    "reading": (Reading, "recording", lambda reading: str(reading.locator)),
    "analysis": (type(RULES[0]), "find", lambda _, context: str(context.recording.run.name)),
    "storing": (Store, "write", lambda _, reading, *__: str(reading.locator)),
}
"""By stage: what does it, and the name of the run that it is done for."""


@contextmanager
def fault(stage: str, error: Exception, run: str = "") -> Iterator[None]:
    """Let a stage of gpureport itself fail, as a bug would, so that a test sees what becomes of the other runs.

    It fails for the runs whose name, or path of a log, ends like `run`; for all when that is empty.
    """
    owner, name, find_run = _STAGES[stage]
    whole = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        if find_run(*arguments).endswith(run):
            raise error
        return whole(*arguments, **named)

    with patch.object(owner, name, failing):
        yield
