"""Recognises names chosen by others: tags for a run's owner and location, and training metrics.

Tags come from a job table, a file beside the log, Prometheus labels, a recorded job's environment, and trackers.
Metric names are split at all characters other than letters and digits, and recognised only by known words: `Loss`,
`train/loss` and `val_loss` are losses, but `lossless` is not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from typing import NamedTuple, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LabelTag(NamedTuple):
    """A tag and its sources: table columns, environment variables, and labels of Prometheus series.

    `columns` lists the headings of `sacct` and other common headings, in snake_case; `other_names` are tags and params
    with the same meaning. The first source that is set is used. A personal tag identifies a person, team or machine.
    """

    name: str
    columns: Sequence[str]
    variables: Sequence[str] = ()
    other_names: Sequence[str] = ()
    series_labels: Sequence[str] = ()
    is_personal: bool = True

    @property
    def title(self) -> str:
        return self.name.replace("_", " ").capitalize()


LABEL_TAGS = (
    LabelTag(
        "user",
        ["user", "username", "user_name", "owner"],
        ["SLURM_JOB_USER"],
        ["username", "owner", "mlflow.user", "sys/owner"],
    ),
    LabelTag("account", ["account"], ["SLURM_JOB_ACCOUNT"]),
    LabelTag("project", ["project", "project_name"]),
    LabelTag("partition", ["partition", "queue"], ["SLURM_JOB_PARTITION"], ["queue"], is_personal=False),
    LabelTag("job", ["job_id", "job", "jobid"], ["SLURM_JOB_ID"], ["job_id"], ["hpc_job"], is_personal=False),
    LabelTag("job_name", ["job_name", "jobname"], ["SLURM_JOB_NAME"], is_personal=False),
    LabelTag("job_state", ["state", "job_state", "status"], is_personal=False),
    LabelTag(
        "node",
        ["node_list", "nodelist", "nodes", "node", "host", "hosts", "hostname"],
        ["SLURMD_NODENAME", "NODE_NAME"],
        ["host", "hostname"],
        ["Hostname", "hostname", "node", "kubernetes_node"],
    ),
    LabelTag("pod", ["pod", "pod_name"], ["POD_NAME"], series_labels=["exported_pod", "pod"]),
    LabelTag("namespace", ["namespace"], ["POD_NAMESPACE"], series_labels=["exported_namespace", "namespace"]),
    LabelTag("container", ["container"], series_labels=["exported_container", "container"], is_personal=False),
)
"""Run labels, in the order in which pages list them."""
BY_NAME = {tag.name: tag for tag in LABEL_TAGS}
BY_COLUMN = {column: tag for tag in LABEL_TAGS for column in tag.columns}


def find_label(params_and_tags: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return the value of a run's tag or param with this name or, failing that, with the same meaning."""
    pairs, tag = dict(params_and_tags), BY_NAME.get(name)
    names = [name, *tag.other_names, *tag.variables] if tag else [name]
    return next((pairs[each] for each in names if pairs.get(each)), None)


def override_pairs(*layers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags from several sources, merged by name. Later sources take precedence."""
    return tuple(dict(chain.from_iterable(layers)).items())


def merge_pairs(stated: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """Return the params or tags of all parts of a run, merged by name."""
    values = group_pairs(chain.from_iterable(stated))
    return tuple((name, ", ".join(dict.fromkeys(each))) for name, each in values.items())


def group_pairs(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def read_environment_labels(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that Slurm and Kubernetes set. Array tasks are named as in `sacct`."""
    found = {tag.name: next(filter(None, map(variables.get, tag.variables)), "") for tag in LABEL_TAGS}
    array, task = (variables.get(f"SLURM_ARRAY_{part}", "") for part in ("JOB_ID", "TASK_ID"))
    if array and task:
        found["job"] = f"{array}_{task}"
    return tuple((name, value) for name, value in found.items() if value)


class Role(StrEnum):
    LOSS = "loss"
    ERROR = "error"
    ACCURACY = "accuracy"
    THROUGHPUT = "throughput"
    STEP_TIME = "step time"
    EPOCH_TIME = "epoch time"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingName:
    """The meaning of a metric's name: `unit` is what a throughput counts, `seconds` the length of a time unit."""

    name: str
    role: Role
    validation: bool = False
    unit: str = ""
    seconds: float = 1.0

    @property
    def falls(self) -> bool:
        return self.role is not Role.ACCURACY


QUALITY_ROLES = frozenset({Role.LOSS, Role.ERROR, Role.ACCURACY})
_WORK = {
    "samples": "samples sample examples images imgs img image sequences seqs",
    "tokens": "tokens token tok toks",
    "steps": "steps step it its iter iters iterations batches batch",
    "epochs": "epochs",
}
_UNITS = {word: unit for unit, words in _WORK.items() for word in words.split()}
_SECOND, _TIMES = {"sec", "second", "s"}, {"time", "duration", "seconds", "secs"}
_QUALITY = {
    Role.LOSS: "loss logloss perplexity ppl nll crossentropy bpc bpb",
    Role.ERROR: "error err mae mse rmse mape wer cer fid",
    Role.ACCURACY: "accuracy acc top1 top5 f1 auc auroc map miou iou bleu dice precision r2 mcc kappa chrf meteor "
    "cider map50 rocauc rouge rougel rouge1 rouge2 recall ndcg mrr psnr ssim reward",
}
"""Words for the quality of a model. If a name fits several roles, the first is used."""
_BESIDE_QUALITY = {"scale", "scaler", "weight", "coef", "count", "num", *_TIMES}
"""Words that rule out a quality metric: `loss_scale`, `loss_weight`, `error_count`."""
_BATCH = {"step", "batch", "iter", "iteration"}
_OF_STEPS, _MILLISECONDS = {"epoch", "it", *_BATCH}, {"ms", "msec", "milliseconds", "millis"}
_VALIDATION = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_THROUGHPUTS = {"throughput", "fps", "ips", "tps"}


def normalise_work_unit(unit: str) -> str:
    """Return `samples` for images, or `steps` for iterations."""
    return _UNITS.get(unit.lower(), unit)


def recognise_metric(name: str) -> TrainingName | None:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if (unit := _rate_of(words)) is not None:
        return TrainingName(name=name, role=Role.THROUGHPUT, unit=unit)
    # mAP and mIoU are one word each, but valLoss is two words
    found = {*words, *re.findall(r"[a-z0-9]+", name.lower())}
    each = any(a in _SECOND and b in _OF_STEPS for a, b in pairwise(word for word in words if word != "per"))
    if each or (found & {*_TIMES, *_MILLISECONDS} and found & {"epoch", *_BATCH}):
        of = Role.EPOCH_TIME if "epoch" in found else Role.STEP_TIME
        return TrainingName(name=name, role=of, seconds=1e-3 if found & _MILLISECONDS else 1.0)
    role = next((role for role, known in _QUALITY.items() if found & {*known.split()}), None)
    if role is None or found & _BESIDE_QUALITY:
        return None
    return TrainingName(name=name, role=role, validation=bool(found & _VALIDATION))


def _rate_of(words: Sequence[str]) -> str | None:
    """Return what a throughput counts ("" if its name does not say), or None for any other metric."""
    units = [_UNITS[word] for word in words if word in _UNITS]
    if "per" in words:
        place = words.index("per")
        counted = [_UNITS[word] for word in words[:place] if word in _UNITS]
        return (counted or [""])[-1] if _SECOND.intersection(words[place + 1 :]) else None
    if _THROUGHPUTS.intersection(words):
        return (units or [""])[-1]
    # samples/s and tokens/sec, which end in a unit of time
    return units[-1] if units and words[-1] in _SECOND and {*words[-2:-1]} & _UNITS.keys() else None


def recognise_evaluation(name: str) -> TrainingName | None:
    """Return the metric that a name denotes if it measures quality on validation data, else None.

    Metrics of single batches (`val_loss_step`) are left out, since their best value is mostly noise.
    """
    metric = recognise_metric(name)
    known = metric is not None and metric.validation and metric.role in QUALITY_ROLES
    return metric if known and not is_batch_metric(name) else None


def is_batch_metric(name: str) -> bool:
    return not _BATCH.isdisjoint(re.findall(r"[a-z]+", name.lower()))


def choose_throughput(names: Iterable[str], wanted: str | None) -> TrainingName | None:
    """Return the metric that counts work: the `wanted` one if given, else one with a known unit."""
    known = list(names)
    if wanted is not None:
        metric = recognise_metric(wanted)
        found = TrainingName(name=wanted, role=Role.THROUGHPUT, unit=metric.unit if metric else "")
        return found if wanted in known else None
    metrics = [metric for name in known if (metric := recognise_metric(name)) and metric.unit]
    trained = [each for each in metrics if _VALIDATION.isdisjoint(re.findall(r"[a-z]+", each.name.lower()))]
    order = ("samples", "tokens", "steps")
    counted = [each for each in trained or metrics if each.unit in order]
    return min(counted, key=lambda each: order.index(each.unit), default=None)
