"""Training metrics recognised by their names: what counts work, what is to fall, and what is to rise.

Trackers hold whatever a script logged under whatever name it chose. Only names that say what they are are taken: a
name is split at everything but letters and digits, `Loss`, `train/loss` and `val_loss` are losses, `lossless` is none.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a training metric says."""

    LOSS = "loss"
    ERROR = "error"
    ACCURACY = "accuracy"
    THROUGHPUT = "throughput"
    STEP_TIME = "step time"
    EPOCH_TIME = "epoch time"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingName:
    """What a metric's name says of it.

    Attributes:
        name: the name.
        role: what it measures.
        validation: whether it is of validation or test data.
        unit: what a throughput counts a second; empty where the name does not say, and for other roles.
    """

    name: str
    role: Role
    validation: bool = False
    unit: str = ""

    @property
    def falls(self) -> bool:
        """Whether a lower value is the better one, of a loss, an error or an accuracy."""
        return self.role is not Role.ACCURACY


QUALITY_ROLES = frozenset({Role.LOSS, Role.ERROR, Role.ACCURACY})
"""Roles of metrics that say how good a model is."""

_UNITS = {
    "samples": "samples", "sample": "samples", "examples": "samples", "images": "samples", "imgs": "samples",
    "img": "samples", "image": "samples", "sequences": "samples", "seqs": "samples",
    "tokens": "tokens", "token": "tokens", "tok": "tokens", "toks": "tokens",
    "steps": "steps", "step": "steps", "it": "steps", "its": "steps", "iter": "steps", "iters": "steps",
    "iterations": "steps", "batches": "steps", "batch": "steps",
    "epochs": "epochs",
}  # fmt: skip
"""Words for what is worked on, and the unit of work they are."""
_SECOND = {"sec", "second", "s"}
_TIMES = {"time", "duration", "seconds", "secs"}
_LOSSES = {"loss", "logloss", "perplexity", "ppl", "nll", "crossentropy", "bpc", "bpb"}
_ERRORS = {"error", "err", "mae", "mse", "rmse", "mape", "wer", "cer", "fid"}
_ACCURACIES = {
    *("accuracy", "acc", "top1", "top5", "f1", "auc", "auroc", "map", "miou", "iou", "bleu", "dice"),
    *("precision", "r2", "mcc", "kappa", "chrf", "meteor", "cider", "map50", "rocauc"),
    *("rouge", "rougel", "rouge1", "rouge2", "recall", "ndcg", "mrr", "psnr", "ssim", "reward"),
}
_QUALITY = ((Role.LOSS, _LOSSES), (Role.ERROR, _ERRORS), (Role.ACCURACY, _ACCURACIES))
"""Words for how good a model is, the ones that say most first."""
_BESIDE_QUALITY = {"scale", "scaler", "weight", "coef", "count", "num", *_TIMES}
"""Words beside those, of names that say nothing of a model: `loss_scale`, `loss_weight`, `error_count`, `loss_time`."""
_BATCH = {"step", "batch", "iter", "iteration"}
_VALIDATION = {"val", "valid", "validation", "eval", "evaluation", "test", "dev"}
_THROUGHPUTS = {"throughput", "fps", "ips", "tps"}


def normalise_work_unit(unit: str) -> str:
    """Return a unit of work by its usual name: images are samples, iterations are steps; any other as it is."""
    return _UNITS.get(unit.lower(), unit)


def recognise_metric(name: str) -> TrainingName | None:
    """Return what a metric's name says of it, None where it says nothing that is known."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    unit = _rate_of(words)
    if unit is not None:
        return TrainingName(name=name, role=Role.THROUGHPUT, unit=unit)
    # mAP and mIoU are one word, valLoss two
    found = set(words) | set(re.findall(r"[a-z0-9]+", name.lower()))
    validation = bool(found & _VALIDATION)
    if found & _TIMES and "epoch" in found:
        return TrainingName(name=name, role=Role.EPOCH_TIME)
    if found & _TIMES and found & _BATCH:
        return TrainingName(name=name, role=Role.STEP_TIME)
    role = None if found & _BESIDE_QUALITY else next((role for role, known in _QUALITY if found & known), None)
    return None if role is None else TrainingName(name=name, role=role, validation=validation)


def _rate_of(words: Sequence[str]) -> str | None:
    """Return what a throughput counts, empty where its name does not say; None where the words are none's."""
    units = [_UNITS[word] for word in words if word in _UNITS]
    if "per" in words:
        place = words.index("per")
        if set(words[place + 1 :]) & _SECOND:
            return next((_UNITS[word] for word in reversed(words[:place]) if word in _UNITS), "")
        return None
    if set(words) & _THROUGHPUTS:
        return units[-1] if units else ""
    # samples/s and tokens/sec, where the second stands last
    return units[-1] if units and words[-1] in _SECOND and words[-2:-1] and words[-2] in _UNITS else None


def recognise_evaluation(name: str) -> TrainingName | None:
    """Return what a metric's name says of how good the model is on data it was not trained on; None where nothing.

    Figures of single batches (`val_loss_step`) are left out: they scatter, and the best of them says little.
    """
    metric = recognise_metric(name)
    known = metric is not None and metric.validation and metric.role in QUALITY_ROLES
    return metric if known and not is_batch_metric(name) else None


def is_batch_metric(name: str) -> bool:
    """Return whether a metric's name says that it is of single batches, as `train_loss_step` is."""
    return bool(set(re.findall(r"[a-z]+", name.lower())) & _BATCH)


def choose_throughput(names: Iterable[str], wanted: str | None) -> TrainingName | None:
    """Return the metric that counts work: the one a person names, else the only one of its unit that says so.

    Args:
        names: names of training metrics.
        wanted: name a person gives.
    """
    known = list(names)
    if wanted is not None:
        if wanted not in known:
            return None
        metric = recognise_metric(wanted)
        return TrainingName(name=wanted, role=Role.THROUGHPUT, unit=metric.unit if metric else "")
    found = [
        metric
        for name in known
        if (metric := recognise_metric(name)) and metric.role is Role.THROUGHPUT and metric.unit
    ]
    # validation has a speed of its own, which is not that of training
    found = [each for each in found if not set(re.findall(r"[a-z]+", each.name.lower())) & _VALIDATION] or found
    best = [each for unit in ("samples", "tokens", "steps") for each in found if each.unit == unit]
    return best[0] if best else None
