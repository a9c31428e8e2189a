"""What changed between two steps, as far as it was recorded: params, tags, hardware, driver and limits."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.job.params import read_params
from gpureport.comparison.comparable import HARDWARE, has_same_memory, read_property
from gpureport.comparison.factors import Factor
from gpureport.comparison.steps import Step
from gpureport.redaction import HIDDEN

_COMMAND = "command"  # the tag that holds the command line of a recording
_SETTINGS = (
    *("workers", "precision", "batch", "accumulation", "pin_memory", "non_blocking", "persistent_workers"),
    *("prefetch_factor", "prefetch", "compiled", "cuda_graphs", "cudnn_benchmark", "pretrained"),
    "asynchronous_checkpoints",
)
"""What the advice speaks of, by names of `JobParams`; cores are of the machine."""
_OF_ONE_RUN = {
    *("id", "ids", "uuid", "run_id", "job_id", "pid", "run_name", "experiment_name", "log_url", "run_url"),
    *("time", "date", "timestamp", "created", "started", "finished", "start_time", "end_time", "creation_time"),
    *("modification_time", "ping_time", "running_time", "monitoring_time", "duration", "runtime"),
    *("commit", "git_commit", "commit_hash", "git_hash", "git_sha", "sha", "user", "username", "owner", "author"),
    *("output_dir", "log_dir", "logdir", "logging_dir", "run_dir", "save_dir", "checkpoint_dir", "ckpt_dir"),
    *("note", "description", "state", "status", "port", "master_port"),
    *("account", "project", "job", "job_name", "job_state", "pod", "namespace"),
}
"""Last parts of names of params and tags that describe one run, not its set-up."""
_JOB_LENGTH = re.compile(
    r"(?:(?:max|num|n|total|train|training|max_train|num_train)_)?(?:steps|iterations|iters?)"
    r"|(?:(?:max|num|n|total|train|training|num_train)_)?epochs"
)
_OF_JOB = (
    {"train", "training", "trainer", "pl", "lightning", "fit", "loop", "run", "job", "experiment", "general", "main"}
    | {"args", "arguments", "params", "parameters", "hparams", "hyperparams", "hyperparameters", "hyper", "hp"}
    | {"config", "configuration", "cfg", "conf", "options", "opts", "settings", "flags", "global"}
)
"""Words before the last part of a name that still tells the length of the job: `trainer.max_steps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingValue:
    """A value in runs of a step: its text, None if not stated, and how many runs."""

    text: str | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupChange:
    """Something that is not the same in two steps: a `param`, a `tag` or `hardware`.

    Several values of repetitions are joined, and stand one by one with their number of runs, the most common first.
    """

    base: str
    step: str
    kind: str
    key: str
    before: str | None
    after: str | None
    values_before: tuple[SettingValue, ...]
    values_after: tuple[SettingValue, ...]
    of_one_run: bool = False

    @property
    def texts(self) -> tuple[str | None, ...]:
        """Every value of both steps; None where a run does not state it."""
        return tuple(value.text for value in (*self.values_before, *self.values_after))


def compare_setups(base: Step, step: Step) -> tuple[SetupChange, ...]:
    """Return all that differs between two steps, what bears on GPU time first."""
    found = [*_compare_labels(base, step, "param"), *_compare_labels(base, step, "tag"), *_compare_gpus(base, step)]
    tags = (tag for side in (base, step) for run in side.runs for tag in run.info.tags)
    words = (word for key, value in tags if key == _COMMAND for word in _split(value))
    options = {_name_option(word) for word in words if word[:1] == "-" or "=" in word}
    return tuple(sorted(found, key=lambda change: _rank(change, options)))


def _rank(change: SetupChange, options: Collection[str]) -> tuple[int, int]:
    """Sort settings known to advice first, then command-line options, hardware, the rest, and the command."""
    if change.kind == "hardware":
        return 2, 0
    setups = [read_params([(change.key, text)]) for text in change.texts if text is not None]
    known = (place for place, name in enumerate(_SETTINGS) if any(getattr(one, name) is not None for one in setups))
    if (place := next(known, None)) is not None:
        return 0, place
    if change.kind == "tag":
        return (5 if change.key == _COMMAND else 4), 0
    return (1 if _normalize(change.key) in options else 3), 0


def list_distinct_changes(changes: Sequence[SetupChange]) -> tuple[SetupChange, ...]:
    """Return the changes without what describes single runs, or only repeats params."""
    names = {_normalize(change.key) for change in changes if change.kind == "param"}
    return tuple(change for change in changes if not change.of_one_run and not _repeats_params(change, names))


def list_changes_of_job(changes: Sequence[SetupChange]) -> tuple[SetupChange, ...]:
    """Return the distinct changes but those of how long the job is."""
    found = list_distinct_changes(changes)
    return tuple(change for change in found if change.kind != "param" or not _is_length_of_job(change.key))


def _is_length_of_job(key: str) -> bool:
    *parents, last = map(_normalize, _split_name(key))
    is_of_job = _OF_JOB.issuperset(word for parent in parents for word in parent.split("_") if word)
    return is_of_job and _JOB_LENGTH.fullmatch(last) is not None


def has_params(base: Step, step: Step) -> bool:
    """Return whether both steps recorded params or tags, so that a change shows."""
    return all(any(run.info.states_setup for run in side.runs) for side in (base, step))


def _compare_labels(base: Step, step: Step, kind: str) -> Iterator[SetupChange]:
    labels = Factor(kind=kind).labels
    sides = [[labels(run.info) for run in side.runs] for side in (base, step)]
    for key in sorted({key for side in sides for one in side for key in one}):
        before, after = (_count_values(one.get(key) for one in side) for side in sides)
        if _find_shares(before) == _find_shares(after) or _hides_both(before, after):
            continue
        texts = [value.text for value in (*before, *after)]
        differ = None not in texts and len(set(texts)) == len(base.runs) + len(step.runs)
        yield SetupChange(
            base=base.label,
            step=step.label,
            kind=kind,
            key=key,
            before=_join(before),
            after=_join(after),
            values_before=before,
            values_after=after,
            of_one_run=_describes_one_run(key) or (differ and max(len(before), len(after)) > 1),
        )


def _count_values(values: Iterable[str | None]) -> tuple[SettingValue, ...]:
    order = sorted(Counter(values).items(), key=lambda each: (-each[1], each[0] or ""))
    return tuple(SettingValue(text=text, runs=runs) for text, runs in order)


def _find_shares(values: Sequence[SettingValue]) -> dict[str | None, float]:
    runs = sum(value.runs for value in values)
    return {value.text: value.runs / runs for value in values}


def _hides_both(before: Sequence[SettingValue], after: Sequence[SettingValue]) -> bool:
    """Return whether a redacted value is compared, which may or may not differ."""
    texts = [value.text or "" for value in (*before, *after)]
    return all(any(value.text for value in side) for side in (before, after)) and any(HIDDEN in each for each in texts)


def _join(values: Sequence[SettingValue]) -> str | None:
    return ", ".join(sorted(value.text for value in values if value.text is not None)) or None


def _describes_one_run(key: str) -> bool:
    # the note that MLflow shows
    return key.lower() == "mlflow.note.content" or _normalize(_split_name(key)[-1]) in _OF_ONE_RUN


def _compare_gpus(base: Step, step: Step) -> Iterator[SetupChange]:
    """Yield what both recorded and differs: what one log does not name may be the same."""
    for key in HARDWARE:
        before, after = (read_property(side, key) for side in (base, step))
        is_same = has_same_memory(base, step) if key == "gpu_memory" else before == after
        if before is not None and after is not None and not is_same:
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


def _repeats_params(change: SetupChange, names: Collection[str]) -> bool:
    if (change.kind, change.key) != ("tag", _COMMAND) or None in change.texts:
        return False
    return len({tuple(_drop_options(_split(text or ""), names)) for text in change.texts}) == 1


def _split_name(key: str) -> list[str]:
    return re.split(r"[./:]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key))


def _normalize(name: str) -> str:
    return name.lstrip("-").replace("-", "_").lower()


def _name_option(word: str) -> str:
    return _normalize(word.partition("=")[0])


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        # a quote without its partner
        return command.split()


def _drop_options(words: Iterable[str], names: Collection[str]) -> Iterator[str]:
    is_value = False
    for word in words:
        if is_value and word[:1] != "-":
            is_value = False
            continue
        is_named = (word[:1] == "-" or "=" in word) and _name_option(word) in names
        is_value = is_named and "=" not in word
        if not is_named:
            yield word
