"""What is kept of a night: the figures of each run, or why there are none."""

import json
from dataclasses import asdict, dataclass
from hashlib import sha256

from gpureport.findings import Check
from gpureport.nightly.history.night_figures import Figure

Params = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRun:
    """One run of a night, or a source that gave none.

    Attributes:
        source: name of the log's file, or how else the run was named.
        run_id: the run; None for a source that gave no data.
        name: what a person calls the run.
        step: label of its step; empty without one.
        model: its GPUs by model, each once.
        gpus: how many it has.
        started: first sample in microseconds; None without data.
        params: what the run was configured with.
        driver: driver version; empty where not recorded.
        figures: every figure.
        reason: why there are no data; empty where there are.
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

    def value(self, name: str) -> float | None:
        """Return the value of a figure, None where it was not recorded."""
        return next((figure.value for figure in self.figures if figure.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NightlyRecord:
    """What one call recorded.

    Attributes:
        date: the night, as `2026-03-14`.
        label: what else it is known by, such as a commit or a build; empty without.
        command: the command that recorded it, printed in its report.
        version: version of gpureport.
        parts: one a run, or a source without data.
        checks: limits that were held against its runs, and what became of each; empty without any.
        recorded: when, in microseconds; like the next it is no part of what tells nights apart.
        file: name of the file it was read from, without its ending; empty before.
    """

    date: str
    label: str
    command: str
    version: str
    parts: tuple[NightlyRun, ...]
    checks: tuple[Check, ...] = ()
    recorded: int = 0
    file: str = ""

    @property
    def id(self) -> str:
        """Its date and a digest of all it says, so that the same night recorded twice is one file."""
        said = asdict(self)
        del said["recorded"], said["file"]
        if not self.checks:
            # nights of before limits were kept, and those without any, have the same name
            del said["checks"]
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"{self.date}-{sha256(text.encode()).hexdigest()[:16]}"

    @property
    def page(self) -> str:
        """The name of its report, which stays when a part of it is replaced."""
        return self.file or self.id

    @property
    def measured(self) -> tuple[NightlyRun, ...]:
        """Its runs."""
        return tuple(part for part in self.parts if part.run_id is not None)

    @property
    def missing(self) -> tuple[NightlyRun, ...]:
        """Its sources without data."""
        return tuple(part for part in self.parts if part.run_id is None)
