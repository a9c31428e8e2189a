"""What the params and tags of a run say of how the job was set up: loader, machine, compilation, batch.

Trackers, command lines and configuration files write one setting in many ways: `dataloader_num_workers`,
`data.num_workers`, `--workers`. Only the last part of a name counts, so that what is before it cannot matter.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Params = Sequence[tuple[str, str]]

ON = {"true", "yes", "on", "1", "y", "enabled"}
OFF = {"false", "no", "none", "off", "0", "n", "disabled", "null", ""}
_OTHER_SCOPES = {"val", "valid", "validation", "eval", "evaluation", "test", "predict", "ray", "scaling"}
"""Words of a name that make it a setting of something else than the training loop of one process."""
_CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that record CUDA graphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One param: as it was written, and its value: 1 for on, 0 for off, infinity for a number left to the library."""

    text: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class JobParams:
    """What params and tags say; None for what they do not say, or say in two ways.

    Attributes:
        workers: loader workers of one process.
        cores: logical cores of the machine, or of the job's share of it.
        cores_per_process: cores of one process of the job.
        pin_memory: whether batches are loaded into pinned memory.
        non_blocking: whether they are copied to the GPU without waiting.
        persistent_workers: whether workers outlive an epoch.
        prefetch_factor: batches each worker loads ahead.
        prefetch: batches loaded ahead in all.
        compiled: whether the model is compiled.
        cuda_graphs: whether steps are replayed as CUDA graphs.
        cudnn_benchmark: whether cuDNN times its algorithms for each input shape.
        pretrained: whether training starts from weights that were trained before.
        accumulation: batches whose gradients make one step of the optimizer.
        asynchronous_checkpoints: whether checkpoints are written in the background.
        batch: samples in a batch, of one process or of all.
        precision: whether arithmetic is done in 16 bits or fewer, as `precision_params` tells it.
    """

    workers: Setting | None = None
    cores: Setting | None = None
    cores_per_process: Setting | None = None
    pin_memory: Setting | None = None
    non_blocking: Setting | None = None
    persistent_workers: Setting | None = None
    prefetch_factor: Setting | None = None
    prefetch: Setting | None = None
    compiled: Setting | None = None
    cuda_graphs: Setting | None = None
    cudnn_benchmark: Setting | None = None
    pretrained: Setting | None = None
    accumulation: Setting | None = None
    asynchronous_checkpoints: Setting | None = None
    batch: Setting | None = None
    precision: Setting | None = None


NO_PARAMS = JobParams()
"""What a run without params says."""

NAMES: dict[str, tuple[str, ...]] = {
    "workers": ("num_workers", "n_workers", "nworkers", "workers", "data_workers", "loader_workers", "train_workers",
                "dataloader_num_workers", "dataloader_workers", "num_data_workers", "num_loader_workers",
                "train_num_workers", "num_parallel_calls"),
    "cores": ("cpu_count", "cpus", "cores", "num_cpus", "n_cpus", "ncpus", "cpu_cores", "num_cores", "n_cores",
              "num_cpu_cores", "cpu_count_logical", "logical_cores", "logical_cpus", "vcpus", "slurm_cpus_on_node"),
    "cores_per_process": ("cpus_per_task", "slurm_cpus_per_task", "cpus_per_gpu", "cpus_per_worker"),
    "pin_memory": ("pin_memory", "pinned_memory", "use_pin_memory", "pin_mem", "dataloader_pin_memory", "pin"),
    "non_blocking": ("non_blocking", "nonblocking", "non_blocking_copy", "dataloader_non_blocking"),
    "persistent_workers": ("persistent_workers", "dataloader_persistent_workers", "use_persistent_workers"),
    "prefetch_factor": ("prefetch_factor", "dataloader_prefetch_factor"),
    "prefetch": ("prefetch", "prefetch_batches", "prefetch_size", "num_prefetch", "prefetch_buffer_size"),
    "compiled": ("compile", "torch_compile", "use_compile", "use_torch_compile", "compile_model", "torchcompile",
                 "jit_compile", "xla", "use_xla", "torch_compile_mode", "torch_compile_backend", "compile_mode"),
    "cuda_graphs": ("cuda_graph", "cuda_graphs", "use_cuda_graph", "use_cuda_graphs", "enable_cuda_graph",
                    "enable_cuda_graphs", "cudagraph", "cudagraphs"),
    "cudnn_benchmark": ("cudnn_benchmark", "benchmark", "cudnn_autotune"),
    "pretrained": ("pretrained", "use_pretrained", "pretrained_weights", "pretrained_model", "pretrained_model_path",
                   "pretrained_model_name_or_path", "model_name_or_path", "finetune", "fine_tune", "finetune_from"),
    "accumulation": ("gradient_accumulation_steps", "accumulate_grad_batches", "grad_accum", "grad_accum_steps",
                     "gradient_accumulation", "accumulation_steps"),
    "asynchronous_checkpoints": ("async_save", "async_checkpoint", "async_checkpoints", "async_checkpointing",
                                 "async_save_checkpoint", "asynchronous_checkpoints"),
    "batch": ("batch", "batch_size", "batchsize", "bs", "train_batch_size", "micro_batch_size",
              "train_micro_batch_size", "per_device_train_batch_size", "per_device_batch_size", "per_gpu_batch_size",
              "batch_size_per_gpu", "per_gpu_train_batch_size", "train_micro_batch_size_per_gpu", "global_batch_size"),
}  # fmt: skip
"""Last parts of the names of params by what they set, in lower case with underscores."""

_FIELD = {name: field for field, names in NAMES.items() for name in names}
_SWITCHES = {
    "compiled",
    "cuda_graphs",
    "cudnn_benchmark",
    "pin_memory",
    "non_blocking",
    "persistent_workers",
    "asynchronous_checkpoints",
}


def read_params(params: Iterable[tuple[str, str]]) -> JobParams:
    """Return what params and tags say of the set-up; what two of them say differently counts as not said."""
    settings: dict[str, list[Setting]] = {}
    for name, value in sorted(params):
        for field, setting in _parse_param(name, value):
            settings.setdefault(field, []).append(setting)
    return JobParams(
        **{field: values[0] for field, values in settings.items() if len({one.value for one in values}) == 1}
    )


def _parse_param(name: str, value: str) -> list[tuple[str, Setting]]:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    field = _FIELD.get(re.split(r"[./:]", words)[-1].lstrip("-").replace("-", "_"))
    if field is None or _OTHER_SCOPES & set(re.findall(r"[a-z0-9]+", words)):
        return []
    text = value.strip().lower()
    number = _parse_value(field, text)
    if number is None:
        return []
    setting = Setting(text=f"{name}={value}", value=number)
    whole = field == "compiled" and text.startswith(_CUDA_GRAPH_MODES)
    return [(field, setting), *([("cuda_graphs", setting)] if whole else [])]


def _parse_value(field: str, value: str) -> float | None:
    if field == "pretrained":
        # a path, or the name of a model
        return float(value not in OFF)
    if field == "cudnn_benchmark" and value not in ON | OFF:
        # `benchmark` may name a set of data as well
        return None
    return _parse_switch(value) if field in _SWITCHES else _parse_count(value)


def _parse_switch(value: str) -> float | None:
    """Return whether something is on; the name of a mode or a backend means on."""
    if value in OFF:
        return 0.0
    return 1.0 if value in ON or re.fullmatch(r"[a-z][a-z_-]+", value) else None


def _parse_count(value: str) -> float | None:
    """Return how many of something; -1 and `auto` leave it to the library."""
    if value in {"-1", "auto", "autotune", "tf.data.autotune"}:
        return float("inf")
    if value in ON | OFF and not value.isdecimal():
        return float(value in ON)
    try:
        number = float(value)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
