"""What changed between two steps, as far as it was recorded: params, tags, hardware, driver and limits."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from gpureport.comparison.setup.change_order import rank_change
from gpureport.comparison.setup.command_lines import COMMAND, differ_beside, list_options, normalize_name
from gpureport.comparison.setup.job_length import is_length_of_job
from gpureport.comparison.steps import recorded_setup
from gpureport.comparison.steps.recorded_setup import Value
from gpureport.comparison.steps.steps import Step
from gpureport.recording import Run
from gpureport.redaction import HIDDEN

_HARDWARE: tuple[tuple[str, Callable[[Step], Value]], ...] = (
    ("gpu_models", recorded_setup.models),
    ("gpu_count", recorded_setup.gpu_count),
    ("gpu_memory", recorded_setup.memory_totals),
    ("driver", recorded_setup.drivers),
    ("power_limit", recorded_setup.power_limits),
)

_OF_ONE_RUN = {
    *("id", "ids", "uuid", "run_id", "job_id", "pid", "run_name", "experiment_name", "log_url", "run_url"),
    *("time", "date", "timestamp", "created", "started", "finished", "start_time", "end_time", "creation_time"),
    *("modification_time", "ping_time", "running_time", "monitoring_time", "duration", "runtime"),
    *("commit", "git_commit", "commit_hash", "git_hash", "git_sha", "sha", "user", "username", "owner", "author"),
    *("output_dir", "log_dir", "logdir", "logging_dir", "run_dir", "save_dir", "checkpoint_dir", "ckpt_dir"),
    *("note", "description", "state", "status", "port", "master_port"),
    *("account", "project", "job", "job_name", "job_state", "pod", "namespace"),
}
"""Last parts of names of params and tags that describe one run and not how it was set up."""
_OF_ONE_RUN_WHOLE = {"mlflow.note.content"}
"""Whole names of such tags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A value that runs of a step have: its text, None where they do not state one, and how many runs."""

    text: str | None
    runs: int


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
        values_before: every value of the earlier step with its number of runs, the most common first.
        values_after: those of the later step.
        of_one_run: whether it tells runs apart rather than how they were set up: an id, a time, a commit, a user.
    """

    base: str
    step: str
    kind: str
    key: str
    before: str | None
    after: str | None
    values_before: tuple[SettingValue, ...] = ()
    values_after: tuple[SettingValue, ...] = ()
    of_one_run: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Every value of both steps; None where a run does not state it."""
        return tuple(value.text for value in (*self.values_before, *self.values_after))


def compare_setups(base: Step, step: Step) -> tuple[SetupChange, ...]:
    """Return everything recorded that is not the same in two steps, what bears on the GPU's time first."""
    found = [*_labels(base, step, "param"), *_labels(base, step, "tag"), *_hardware(base, step)]
    runs = [analysis.run for side in (base, step) for analysis in side.analyses]
    options = list_options(value for run in runs for key, value in run.tags if key == COMMAND)
    return tuple(sorted(found, key=lambda change: rank_change(change.kind, change.key, change.texts, options)))


def list_distinct_changes(changes: Sequence[SetupChange]) -> tuple[SetupChange, ...]:
    """Return the changes without what describes single runs, and without a command line that only repeats params."""
    names = {normalize_name(change.key) for change in changes if change.kind == "param"}
    return tuple(change for change in changes if not change.of_one_run and not _repeats_params(change, names))


def list_changes_of_job(changes: Sequence[SetupChange]) -> tuple[SetupChange, ...]:
    """Return the distinct changes that can make a job faster or slower: not those of how long it runs."""
    return tuple(
        change
        for change in list_distinct_changes(changes)
        if not (change.kind == "param" and is_length_of_job(change.key))
    )


def _repeats_params(change: SetupChange, names: Collection[str]) -> bool:
    """Return whether a change is of a command line that differs in the values of params alone."""
    commands = [text for text in change.texts if text is not None]
    given = len(commands) == len(change.texts)
    return (change.kind, change.key) == ("tag", COMMAND) and given and not differ_beside(commands, names)


def has_params(base: Step, step: Step) -> bool:
    """Return whether params or tags were recorded of a run of each of two steps, so that a change shows."""
    return all(any(analysis.run.states_setup for analysis in side.analyses) for side in (base, step))


def _labels(base: Step, step: Step, kind: str) -> Iterator[SetupChange]:
    keys = {key for side in (base, step) for analysis in side.analyses for key, _ in _pairs(analysis.run, kind)}
    for key in sorted(keys):
        before, after = _values(base, kind, key), _values(step, kind, key)
        if _shares(before) != _shares(after) and not _hides_both(before, after):
            yield SetupChange(
                base=base.label,
                step=step.label,
                kind=kind,
                key=key,
                before=_joined(before),
                after=_joined(after),
                values_before=before,
                values_after=after,
                of_one_run=_describes_one_run(key) or _differs_in_every_run(before, after),
            )


def _pairs(run: Run, kind: str) -> tuple[tuple[str, str], ...]:
    return run.params if kind == "param" else run.tags


def _values(step: Step, kind: str, key: str) -> tuple[SettingValue, ...]:
    """Return the values of a step, the most common first, those of as many runs by their text."""
    counts = Counter(dict(_pairs(analysis.run, kind)).get(key) for analysis in step.analyses)
    order = sorted(counts.items(), key=lambda each: (-each[1], each[0] or ""))
    return tuple(SettingValue(text=text, runs=runs) for text, runs in order)


def _hides_both(before: Sequence[SettingValue], after: Sequence[SettingValue]) -> bool:
    """Return whether a redacted value is compared with another: nobody knows whether the two differ."""
    texts = [value.text or "" for value in (*before, *after)]
    return all(any(value.text for value in side) for side in (before, after)) and any(HIDDEN in each for each in texts)


def _shares(values: Sequence[SettingValue]) -> dict[str | None, float]:
    runs = sum(value.runs for value in values)
    return {value.text: value.runs / runs for value in values}


def _joined(values: Sequence[SettingValue]) -> str | None:
    known = sorted(value.text for value in values if value.text is not None)
    return ", ".join(known) if known else None


def _describes_one_run(key: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).lower()
    return words in _OF_ONE_RUN_WHOLE or re.split(r"[./:]", words)[-1].lstrip("-").replace("-", "_") in _OF_ONE_RUN


def _differs_in_every_run(before: Sequence[SettingValue], after: Sequence[SettingValue]) -> bool:
    """Return whether no two runs share a value where a step was repeated, as with seeds and ids."""
    repeated = len(before) > 1 or len(after) > 1
    texts = [value.text for value in (*before, *after)]
    return repeated and None not in texts and len(set(texts)) == sum(value.runs for value in (*before, *after))


def _hardware(base: Step, step: Step) -> Iterator[SetupChange]:
    """Yield what was recorded of both and differs: what one log does not name may be the same."""
    for key, read in _HARDWARE:
        before, after = read(base), read(step)
        same = recorded_setup.has_same_memory(base, step) if key == "gpu_memory" else before == after
        if before is not None and after is not None and not same:
            yield SetupChange(
                base=base.label,
                step=step.label,
                kind="hardware",
                key=key,
                before=str(before),
                after=str(after),
                values_before=(SettingValue(text=str(before), runs=len(base.runs)),),
                values_after=(SettingValue(text=str(after), runs=len(step.runs)),),
            )
