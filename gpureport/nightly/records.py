"""The record of a night: the figures of each run and the results of the rules."""

import json
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from gpureport.findings import Check
from gpureport.nightly.figures import Figure, measure_figures
from gpureport.redaction import redact_pairs, redact_text

if TYPE_CHECKING:
    from gpureport.comparison.run import SampledRun
    from gpureport.recording import Run

Params = tuple[tuple[str, str], ...]
_TEXTS = ("source", "name", "step", "reason")
WORK, CURRENCY, EXIT_CODE = "--work", "--gpu-hour-price currency", "--exit-code"
"""Keys that no user's param can have, for a run's work, currency and exit code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRun:
    """One run of a night, or a source without data and the reason.

    `source` is the log's file name or the run's address. A source without data has no `run_id`, and its
    name is what the user typed. `started` is the time of the first sample, in microseconds.
    """

    source: str
    run_id: str | None = None
    name: str = ""
    step: str = ""
    model: str = ""
    gpus: int = 0
    started: int | None = None
    params: Params = ()
    driver: str = ""
    figures: tuple[Figure, ...] = ()
    reason: str = ""

    @property
    def group(self) -> tuple[str, str]:
        return self.step, self.model

    @property
    def work_unit(self) -> str:
        work = dict(self.params).get(WORK, "")
        amount, _, unit = work.partition(" ")
        return unit if amount.isdecimal() else work

    @property
    def failure(self) -> str:
        code = dict(self.params).get(EXIT_CODE)
        return f"job failed (exit {code})" if code else ""

    def value(self, name: str) -> float | None:
        return next((figure.value for figure in self.figures if figure.name == name), None)


def capture_run(source: str, run: "SampledRun") -> NightlyRun:
    known = run.analysis.run
    work = known.work
    # work counted from a log varies from night to night, so only its unit is recorded
    amount = f"{work.amount:.0f} " if work is not None and work.amount.is_integer() else ""
    stated = [] if work is None else [(WORK, f"{amount}{work.unit}")]
    stated += [(CURRENCY, run.analysis.cost.currency)] if run.analysis.cost and run.analysis.cost.currency else []
    stated += [(EXIT_CODE, str(run.exit_code))] if run.exit_code else []
    return NightlyRun(
        source=_name_source(source),
        run_id=known.id,
        name=known.name,
        step=known.step or "",
        model=name_models(known),
        gpus=len(known.gpus),
        started=known.started,
        params=tuple(sorted(dict([*stated, *known.params]).items())),
        driver=", ".join(sorted({gpu.driver for gpu in known.gpus if gpu.driver})),
        figures=measure_figures(run),
    )


def name_models(run: "Run") -> str:
    return ", ".join(sorted({gpu.model for gpu in run.gpus if gpu.model}))


def capture_missing(source: str, step: str, reason: str) -> NightlyRun:
    return NightlyRun(source=_name_source(source), name=source, step=step, reason=reason)


def _name_source(source: str) -> str:
    return source if source.startswith(("mlflow:", "neptune:", "trackio:")) else PurePath(source).name or source


def capture_check(check: Check) -> Check:
    value = check.value if check.value is not None and isfinite(check.value) else None
    return replace(check, origin=PurePath(check.origin).name, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRecord:
    """The record of one `gpureport nightly` command: a night's runs and the results of its rules.

    `label` is another name for the night, such as a commit or a build. `recorded`, in microseconds, and `file` are not
    part of the id.
    """

    date: str
    label: str
    command: str
    version: str
    runs: tuple[NightlyRun, ...]
    checks: tuple[Check, ...] = ()
    recorded: int = 0
    file: str = ""

    def redacted(self) -> "NightlyRecord":
        texts: list[dict[str, Any]] = [{name: redact_text(getattr(run, name)) for name in _TEXTS} for run in self.runs]
        pairs = zip(self.runs, texts, strict=True)
        runs = tuple(replace(run, params=redact_pairs(run.params), **own) for run, own in pairs)
        return replace(self, label=redact_text(self.label), command=redact_text(self.command), runs=runs)

    @property
    def id(self) -> str:
        """The date and a digest of the content, so recording a night twice yields one file."""
        content = asdict(self)
        del content["recorded"], content["file"]
        # earlier versions called runs "parts" in the digest
        content["parts"] = content.pop("runs")
        if not self.checks:
            # records from versions that had no limits keep their id
            del content["checks"]
        for check in content.get("checks", ()):
            # earlier versions had no reason codes
            del check["reason_code"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{self.date}-{sha256(text.encode()).hexdigest()[:16]}"

    @property
    def page(self) -> str:
        return self.file or self.id

    @property
    def measured_runs(self) -> tuple[NightlyRun, ...]:
        return tuple(run for run in self.runs if run.run_id is not None)

    @property
    def missing_runs(self) -> tuple[NightlyRun, ...]:
        return tuple(run for run in self.runs if run.run_id is None)
