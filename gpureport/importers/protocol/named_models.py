"""The GPU model that a person names, for logs that do not."""

from dataclasses import replace

from gpureport import gpus
from gpureport.recording import Run


def name_gpu_models(run: Run, model: str | None) -> Run:
    """Return a run whose GPUs without a model have this one. A model that the log names is kept, with a note."""
    if model is None:
        return run
    known, devices, notes = gpus.find_gpu(model), list(run.devices), dict.fromkeys(run.quality.notes)
    for place, device in enumerate(devices):
        if device not in run.gpus:
            continue
        if device.model is None:
            window = known.power_window if known and device.power_window == "unknown" else device.power_window
            devices[place] = replace(device, model=model, power_window=window)
            notes[f"the GPU model {model} was given by --gpu-model: the log names none"] = None
        elif device.model.casefold() != model.casefold() and (not known or gpus.find_gpu(device.model) is not known):
            notes[f"{device.id} is known as {device.model}: --gpu-model {model} is not used for it"] = None
    return replace(run, devices=tuple(devices), quality=replace(run.quality, notes=tuple(notes)))
