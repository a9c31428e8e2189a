"""Params and tags that tell how a job was set up, under the names that trackers and scripts give them."""

import pytest

from gpureport.analysis.job import job_params


@pytest.mark.parametrize(
    ("name", "value", "field", "number"),
    [
        ("num_workers", "4", "workers", 4),
        ("dataloader_num_workers", "4", "workers", 4),
        ("data.num_workers", "4", "workers", 4),
        ("config/data/num-workers", "4", "workers", 4),
        ("cfg.loader.numWorkers", "4", "workers", 4),
        ("--workers", "4.0", "workers", 4),
        ("cpu_count", "64", "cores", 64),
        ("env:SLURM_CPUS_PER_TASK", "8", "cores_per_process", 8),
        ("dataloader_pin_memory", "True", "pin_memory", 1),
        ("pin_memory", "false", "pin_memory", 0),
        ("persistent_workers", "1", "persistent_workers", 1),
        ("dataloader_prefetch_factor", "2", "prefetch_factor", 2),
        ("prefetch", "tf.data.AUTOTUNE", "prefetch", float("inf")),
        ("torch_compile", "true", "compiled", 1),
        ("compile", "None", "compiled", 0),
        ("model.compile", "inductor", "compiled", 1),
        ("use_cuda_graphs", "yes", "cuda_graphs", 1),
        ("per_device_train_batch_size", "2", "batch", 2),
        ("batch", "64", "batch", 64),
        ("pin", "True", "pin_memory", 1),
        ("accumulate_grad_batches", "8", "accumulation", 8),
        ("async_save", "on", "asynchronous_checkpoints", 1),
    ],
)
def test_spellings(name: str, value: str, field: str, number: float) -> None:
    """Each is one setting, quoted as it was written."""
    said = job_params.read_params([("lr", "0.1"), (name, value)])
    assert getattr(said, field) == job_params.Setting(text=f"{name}={value}", value=number)


@pytest.mark.parametrize(
    "params",
    [
        [("val.num_workers", "4")],
        [("eval_dataloader/num_workers", "4")],
        [("scaling_config/num_workers", "4")],
        [("num_workers", "many")],
        [("num_workers", "-3")],
        [("workers_per_node", "4")],
        [("compile", "0.5")],
        [("train.num_workers", "4"), ("num_workers", "8")],
    ],
)
def test_what_is_not_said(params: list[tuple[str, str]]) -> None:
    """Settings of evaluation or of ranks, what is no number, and what two params say differently."""
    assert job_params.read_params(params) == job_params.NO_PARAMS


def test_what_is_said_twice_alike_is_said() -> None:
    """A tracker may log a setting from the command line and from the configuration."""
    said = job_params.read_params([("num_workers", "4"), ("args.num_workers", "4")])
    assert said.workers is not None
    assert said.workers.value == 4


def test_no_name_stands_for_two_settings() -> None:
    """Every name is of one field, in the form that names are brought to."""
    names = [name for each in job_params.NAMES.values() for name in each]
    assert len(set(names)) == len(names)
    assert [name for name in names if name != name.lower() or "-" in name] == []
