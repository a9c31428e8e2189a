"""What changed between two steps, as far as it was recorded: params, tags, hardware, driver and limits."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpureport.comparison.steps import recorded_setup
from gpureport.comparison.steps.recorded_setup import Value
from gpureport.comparison.steps.steps import Step
from gpureport.recording import Run

_HARDWARE: tuple[tuple[str, Callable[[Step], Value]], ...] = (
    ("gpu_models", recorded_setup.models),
    ("gpu_count", recorded_setup.gpu_count),
    ("gpu_memory", recorded_setup.memory_totals),
    ("driver", recorded_setup.drivers),
    ("power_limit", recorded_setup.power_limits),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChange:
    """Something that is not the same in two steps.

    Attributes:
        base: label of the earlier step.
        step: label of the later step.
        kind: `param`, `tag` or `hardware`.
        key: what changed.
        before: what it was, several values of repetitions joined; None when not recorded.
        after: what it is.
    """

    base: str
    step: str
    kind: str
    key: str
    before: str | None
    after: str | None


def compare_setups(base: Step, step: Step) -> tuple[SetupChange, ...]:
    """Return everything recorded that is not the same in two steps, params first."""
    found = [*_labels(base, step, "param"), *_labels(base, step, "tag"), *_hardware(base, step)]
    return tuple(
        SetupChange(base=base.label, step=step.label, kind=kind, key=key, before=before, after=after)
        for kind, key, before, after in found
    )


_Found = tuple[str, str, str | None, str | None]


def _labels(base: Step, step: Step, kind: str) -> Iterator[_Found]:
    keys = {key for side in (base, step) for analysis in side.analyses for key, _ in _pairs(analysis.run, kind)}
    for key in sorted(keys):
        before, after = _values(base, kind, key), _values(step, kind, key)
        if before != after:
            yield kind, key, before, after


def _pairs(run: Run, kind: str) -> tuple[tuple[str, str], ...]:
    return run.params if kind == "param" else run.tags


def _values(step: Step, kind: str, key: str) -> str | None:
    given = {dict(_pairs(analysis.run, kind)).get(key) for analysis in step.analyses}
    known = sorted(value for value in given if value is not None)
    return ", ".join(known) if known else None


def _hardware(base: Step, step: Step) -> Iterator[_Found]:
    """Yield what was recorded of both and differs: what one log does not name may be the same."""
    for key, read in _HARDWARE:
        before, after = read(base), read(step)
        if before is not None and after is not None and before != after:
            yield "hardware", key, str(before), str(after)
