"""The GPU model that a person names, for logs that do not."""

from collections.abc import Iterable
from dataclasses import replace

from gpureport import gpus
from gpureport.recording import Device, Run

_OPTION = "--gpu-model"


def name_gpu_models(run: Run, model: str | None) -> Run:
    """Return a run whose GPUs without a model have this one. A model that the log names is kept, with a note."""
    if model is None:
        return run
    unnamed = {gpu.id for gpu in run.gpus if gpu.model is None}
    others = [gpu for gpu in run.gpus if gpu.model is not None and not _is_same(gpu.model, model)]
    devices = tuple(_name_model(device, model) if device.id in unnamed else device for device in run.devices)
    notes = dict.fromkeys((*run.quality.notes, *_describe(model, unnamed, others)))
    return replace(run, devices=devices, quality=replace(run.quality, notes=tuple(notes)))


def _name_model(device: Device, model: str) -> Device:
    known = gpus.find_gpu(model)
    window = known.power_window if known and device.power_window == "unknown" else device.power_window
    return replace(device, model=model, power_window=window)


def _describe(model: str, unnamed: Iterable[str], others: Iterable[Device]) -> Iterable[str]:
    if unnamed:
        yield f"the GPU model {model} was given by {_OPTION}: the log names none"
    for gpu in others:
        yield f"{gpu.id} is known as {gpu.model}: {_OPTION} {model} is not used for it"


def _is_same(one: str, other: str) -> bool:
    found = gpus.find_gpu(one)
    return one.casefold() == other.casefold() or (found is not None and found is gpus.find_gpu(other))
