"""Names that others chose: tags that say whose a run is and where it ran, and training metrics by what they count.

Tags come from a table of jobs, a file beside the log, labels of Prometheus, the environment of a recorded job, and
trackers. These hold what a script logged under whatever name it chose, of which only those count that say what they
are: split at everything but letters and digits, `Loss`, `train/loss` and `val_loss` are losses, `lossless` is none.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, pairwise
from typing import NamedTuple


class LabelTag(NamedTuple):
    """A tag, and what holds it: headings of tables, variables of the environment, and labels of series in Prometheus.

    Headings are in snake_case, those of `sacct` and usual ones; tags and params of `other_names` mean the same. The
    first that is set counts. `exported_` precedes a label of dcgm-exporter's own where the scrape sets one of the same
    name, which then names the exporter. A personal one identifies a person, a team or a machine.
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
"""What a run can be labelled with, in the order in which a page lists it."""
BY_NAME = {tag.name: tag for tag in LABEL_TAGS}
BY_COLUMN = {column: tag for tag in LABEL_TAGS for column in tag.columns}


def find_label(params_and_tags: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return what a run is labelled with by its tag or param of this name, else by one that means the same."""
    pairs, tag = dict(params_and_tags), BY_NAME.get(name)
    names = [name, *tag.other_names, *tag.variables] if tag else [name]
    return next((pairs[each] for each in names if pairs.get(each)), None)


def override_pairs(*layers: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return params or tags of several origins by name; later origins win."""
    return tuple(dict(chain.from_iterable(layers)).items())


def merge_pairs(stated: Iterable[Iterable[tuple[str, str]]]) -> tuple[tuple[str, str], ...]:
    """Return what parts of a run state by name, values that differ listed."""
    values: dict[str, dict[str, None]] = {}
    for name, value in chain.from_iterable(stated):
        values.setdefault(name, {})[value] = None
    return tuple((name, ", ".join(each)) for name, each in values.items())


def read_environment_labels(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the labels that Slurm and Kubernetes put into the environment, tasks of an array as by `sacct`."""
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
    """What a metric's name says of it: what a throughput counts a second, and how many seconds one of a time is."""

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
"""Words for what is worked on, and the unit of work they are."""
_SECOND, _TIMES = {"sec", "second", "s"}, {"time", "duration", "seconds", "secs"}
_QUALITY = {
    Role.LOSS: "loss logloss perplexity ppl nll crossentropy bpc bpb",
    Role.ERROR: "error err mae mse rmse mape wer cer fid",
    Role.ACCURACY: "accuracy acc top1 top5 f1 auc auroc map miou iou bleu dice precision r2 mcc kappa chrf meteor "
    "cider map50 rocauc rouge rougel rouge1 rouge2 recall ndcg mrr psnr ssim reward",
}
"""Words for how good a model is, the ones that say most first."""
_BESIDE_QUALITY = {"scale", "scaler", "weight", "coef", "count", "num", *_TIMES}
"""Further words in names that say nothing of a model: `loss_scale`, `loss_weight`, `error_count`."""
_BATCH = {"step", "batch", "iter", "iteration"}
_OF_STEPS, _MILLISECONDS = {"epoch", "it", *_BATCH}, {"ms", "msec", "milliseconds", "millis"}
_VALIDATION = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_THROUGHPUTS = {"throughput", "fps", "ips", "tps"}


def normalise_work_unit(unit: str) -> str:
    """Return the usual name of a unit of work: samples for images, steps for iterations; else the same."""
    return _UNITS.get(unit.lower(), unit)


def recognise_metric(name: str) -> TrainingName | None:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    if (unit := _rate_of(words)) is not None:
        return TrainingName(name=name, role=Role.THROUGHPUT, unit=unit)
    # mAP and mIoU are one word, valLoss two
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
    """Return what a throughput counts, empty if unnamed; None if the words are none's."""
    units = [_UNITS[word] for word in words if word in _UNITS]
    if "per" in words:
        place = words.index("per")
        counted = [_UNITS[word] for word in words[:place] if word in _UNITS]
        return (counted or [""])[-1] if _SECOND.intersection(words[place + 1 :]) else None
    if _THROUGHPUTS.intersection(words):
        return (units or [""])[-1]
    # samples/s and tokens/sec, where the second stands last
    return units[-1] if units and words[-1] in _SECOND and {*words[-2:-1]} & _UNITS.keys() else None


def recognise_evaluation(name: str) -> TrainingName | None:
    """Return what a metric's name says of how good the model is on data it was not trained on; None where nothing.

    Figures of single batches (`val_loss_step`) are left out: they scatter, and the best of them says little.
    """
    metric = recognise_metric(name)
    known = metric is not None and metric.validation and metric.role in QUALITY_ROLES
    return metric if known and not is_batch_metric(name) else None


def is_batch_metric(name: str) -> bool:
    return not _BATCH.isdisjoint(re.findall(r"[a-z]+", name.lower()))


def choose_throughput(names: Iterable[str], wanted: str | None) -> TrainingName | None:
    """Return the metric that counts work: the one that is `wanted`, else one of training that says what it counts."""
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
