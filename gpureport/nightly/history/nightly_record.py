"""What is recorded of a night: the figures of each run, or why there are none."""

import json
from dataclasses import asdict, dataclass, replace
from hashlib import sha256

from gpureport.findings import Check
from gpureport.nightly.history.night_figures import Figure
from gpureport.redaction import redact_pairs, redact_text

Params = tuple[tuple[str, str], ...]

WORK = "--work"
"""Name of the param that says what a run did, such as `12000 steps`; none of a person is called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRun:
    """One run of a night, or a source without data.

    Attributes:
        source: name of the log's file, or how else the run was named.
        run_id: id of the run; None for a source without data.
        name: what a person calls the run; of a source without data as it was typed.
        step: label of its step; empty without one.
        model: the models of its GPUs, each once.
        gpus: how many it has.
        started: first sample in microseconds; None without data.
        params: what the run was configured with.
        driver: driver version; empty where not recorded.
        figures: every figure.
        reason: why there are no data; empty if there are.
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

    def redacted(self) -> "NightlyRun":
        """Return the run without secrets in what people wrote."""
        return replace(
            self,
            source=redact_text(self.source),
            name=redact_text(self.name),
            step=redact_text(self.step),
            params=redact_pairs(self.params),
            reason=redact_text(self.reason),
        )

    @property
    def work_unit(self) -> str:
        """What its work is counted in; empty where that is not recorded."""
        work = dict(self.params).get(WORK, "")
        amount, _, unit = work.partition(" ")
        return unit if amount.isdecimal() else work

    def value(self, name: str) -> float | None:
        """Return the value of a figure, None where it was not recorded."""
        return next((figure.value for figure in self.figures if figure.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRecord:
    """What one call of `gpureport nightly` recorded.

    Attributes:
        date: the night, as `2026-03-14`.
        label: another name of the night, such as a commit or a build; empty without one.
        command: the command that recorded it, printed in its report.
        version: version of gpureport.
        runs: one for each run, and one for each source without data.
        checks: the outcomes of the limits for its runs; empty without limits.
        recorded: when, in microseconds. This and `file` are no run of the id.
        file: name of the file it was read from, without its suffix; empty before it is written.
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
        """Return the record without secrets in what people wrote; its checks are made without."""
        runs = tuple(run.redacted() for run in self.runs)
        return replace(self, label=redact_text(self.label), command=redact_text(self.command), runs=runs)

    @property
    def id(self) -> str:
        """Its date and a digest of its content, so that the same night recorded twice is one file."""
        content = asdict(self)
        del content["recorded"], content["file"]
        # the digest of earlier versions called the runs runs
        content["parts"] = content.pop("runs")
        if not self.checks:
            # records of versions without limits keep their id
            del content["checks"]
        for check in content.get("checks", ()):
            # nor did they know codes of reasons
            del check["reason_code"]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{self.date}-{sha256(text.encode()).hexdigest()[:16]}"

    @property
    def page(self) -> str:
        """The name of its report, which stays when one of its runs is replaced."""
        return self.file or self.id

    @property
    def measured_runs(self) -> tuple[NightlyRun, ...]:
        """Its runs with data."""
        return tuple(run for run in self.runs if run.run_id is not None)

    @property
    def missing_runs(self) -> tuple[NightlyRun, ...]:
        """Its sources without data."""
        return tuple(run for run in self.runs if run.run_id is None)
