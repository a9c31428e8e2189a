"""Changes between two steps that a finding of an earlier step had advised."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.advice.choose import STEPS, SettingChange
from gpureport.analysis.advice.facts import read_setup
from gpureport.comparison.steps import Step
from gpureport.findings import Finding
from gpureport.recording import Run

_OF_THE_RECORDING = ("gpu_count", "gpu_memory", "power_limit")
"""Settings that a log states of itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisedChange:
    """A step of the catalogue that was taken after a finding had advised it.

    Attributes:
        name: of the step of the catalogue.
        setting: what was changed, by its name in `JobParams` or in the recording.
        advised_in: label of the latest earlier step with such a finding.
        kind: rule of that finding.
        cause: its cause, where known.
    """

    name: str
    setting: str
    advised_in: str
    kind: str
    cause: str | None


def find_advised_changes(earlier: Sequence[Step], step: Step) -> tuple[AdvisedChange, ...]:
    """Return the changes since the step before that findings had advised, in the order of the catalogue.

    Args:
        earlier: the steps before, in order, at least one.
        step: the step that was changed.
    """
    return _name_advice(earlier, _list_applied_steps(earlier[-1], step, SettingChange.is_made))


def find_possibly_advised_changes(earlier: Sequence[Step], step: Step) -> tuple[AdvisedChange, ...]:
    """Return the changes that findings may have advised: of settings that not every run of the two steps names.

    A loader that gets workers on its command line had as many as its program gives it before. The rest as
    `find_advised_changes`.
    """
    named = _list_applied_steps(earlier[-1], step, SettingChange.may_be_made)
    return _name_advice(earlier, ((name, setting) for name, setting in named if setting not in _OF_THE_RECORDING))


def _name_advice(earlier: Sequence[Step], applied: Iterable[tuple[str, str]]) -> tuple[AdvisedChange, ...]:
    """Return steps of the catalogue and their settings with the findings that advised them, those that any did."""
    found = ((name, _find_advice(earlier, name), setting) for name, setting in applied)
    return tuple(
        AdvisedChange(name=name, setting=setting, advised_in=label, kind=finding.kind, cause=finding.cause)
        for name, advice, setting in found
        if advice is not None
        for label, finding in (advice,)
    )


def _list_applied_steps(
    base: Step, step: Step, shows: Callable[[SettingChange, float | None, float | None], bool]
) -> Iterator[tuple[str, str]]:
    """Yield each step of the catalogue that a change of a setting shows as taken, with the setting."""
    for name, advised in STEPS.items():
        for change in advised.changes:
            before, after = _read_setting(base, change.setting), _read_setting(step, change.setting)
            if before is not None and after is not None and shows(change, before[0], after[0]):
                yield name, change.setting
                break


def _read_setting(step: Step, setting: str) -> tuple[float | None] | None:
    """Return the value of a setting in a step; None where its runs differ or say nothing of any setting.

    One that some runs do not name is not known of the step, as is one that none names.
    """
    values = {_read_run_setting(analysis.run, setting) for analysis in step.analyses}
    unnamed: tuple[float | None] = (None,)
    if unnamed in values and None not in values:
        return unnamed
    return values.pop() if len(values) == 1 else None


def _read_run_setting(run: Run, setting: str) -> tuple[float | None] | None:
    if setting == "gpu_count":
        return (float(len(run.gpus)),)
    if setting in _OF_THE_RECORDING:
        sizes = {gpu.memory_total_bytes if setting == "gpu_memory" else gpu.power_limit_watts for gpu in run.gpus}
        return (sizes.pop(),) if len(sizes) == 1 else None
    if not run.states_setup:
        return None
    found = getattr(read_setup(run.params_and_tags), setting)
    return (None if found is None else found.value,)


def _find_advice(earlier: Sequence[Step], name: str) -> tuple[str, Finding] | None:
    """Return the latest step before with a finding that advises a step, and of such findings the one that lost most."""
    for step in reversed(earlier):
        advising = [
            finding
            for analysis in step.analyses
            for finding in analysis.findings
            if name in {advised.name for advised in finding.steps}
        ]
        if advising:
            return step.label, max(advising, key=lambda finding: (finding.lost_gpu_seconds or 0.0, finding.kind))
    return None
