"""Training metrics recognised by their names: what counts work, what is to fall, and what is to rise.

Trackers hold whatever a script logged under whatever name it chose. Only names that say what they are are taken: a
name is split at everything but letters and digits, `Loss`, `train/loss` and `val_loss` are losses, `lossless` is none.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


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
"""Roles of metrics that say how good a model is."""
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
    """Return what a metric's name says of it, None where it says nothing that is known."""
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
    """Return whether a metric's name, as `train_loss_step`, is of single batches."""
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
