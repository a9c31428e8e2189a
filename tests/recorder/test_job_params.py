"""Params that can be seen from outside: what the command line says, versions, variables, cores."""

import sys
from pathlib import Path

import numpy as np
import pytest

from gpureport.recorder.job_params import (
    collect_labels,
    collect_params,
    count_allowed_cores,
    find_python,
    read_environment,
    read_limit,
    read_quota,
    read_settings,
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("python train.py --batch-size 64 --num_workers=2", {"batch_size": "64", "num_workers": "2"}),
        ("python train.py data.batch_size=64 +trainer.fast=1", {"data.batch_size": "64", "trainer.fast": "1"}),
        ("torchrun --standalone train.py --amp --lr 3e-4", {"standalone": "true", "amp": "true", "lr": "3e-4"}),
        ("python train.py --gpus 0 1 --shift -1 dir", {"gpus": "0 1", "shift": "-1"}),
        ("srun --ntasks 4 python train.py", {"ntasks": "4"}),
        ("python -m train -b 64", {}),
        ("python train.py --hf-token abc --api_key=abc --url https://me:abc@host", {}),
    ],
)
def test_settings_of_a_command_line(words: str, expected: dict[str, str]) -> None:
    """Options and assignments are params; secrets are not."""
    assert dict(read_settings(words.split())) == expected


def test_versions_are_those_of_the_jobs_python() -> None:
    """The interpreter of the command is asked; it does not import the packages."""
    found = dict(collect_params([sys.executable, "train.py", "--batch-size", "64"]))
    assert found["batch_size"] == "64"
    assert found["numpy_version"] == np.__version__
    assert found["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert float(found["cpu_cores"]) > 0
    assert found["memory"].endswith(" GiB")


def test_another_environment_has_no_known_python(tmp_path: Path) -> None:
    """What runs in a container or an environment of its own has packages that cannot be seen from here."""
    assert find_python(["docker", "run", "image", "python", "train.py"]) is None
    assert find_python(["/usr/bin/conda", "run", "-n", "env", "python"]) is None
    assert find_python([str(tmp_path / "python3")]) is None
    (tmp_path / "torchrun").write_text("#!/bin/sh\n")
    (tmp_path / "python").write_text("#!/bin/sh\n")
    for name in ("torchrun", "python"):
        (tmp_path / name).chmod(0o755)
    assert find_python([str(tmp_path / "torchrun")]) == str(tmp_path / "python")


def test_known_variables_only() -> None:
    """A name that is not known may hold anything."""
    variables = {
        "CUDA_VISIBLE_DEVICES": "0,1",
        "NCCL_DEBUG": "INFO",
        "HF_TOKEN": "abc",
        "NCCL_": "x",
        "XLA_FLAGS": "--a=b --token abc",
        "RANK": "",
    }
    expected = {"CUDA_VISIBLE_DEVICES": "0,1", "NCCL_DEBUG": "INFO", "XLA_FLAGS": "--a=b --token ***"}
    assert dict(read_environment(variables)) == expected


def test_whose_job_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm and Kubernetes say it; else whoever records is the user, unless that is root."""
    slurm = {"SLURM_JOB_ID": "4418", "SLURM_ARRAY_JOB_ID": "4411", "SLURM_ARRAY_TASK_ID": "7", "SLURM_JOB_NAME": "x"}
    slurm |= {"SLURM_JOB_USER": "ada", "SLURM_JOB_ACCOUNT": "vision", "SLURMD_NODENAME": "gpu01"}
    expected = {"user": "ada", "account": "vision", "job": "4411_7", "job_name": "x", "node": "gpu01"}
    assert dict(collect_labels(slurm)) == expected
    monkeypatch.setenv("LOGNAME", "root")
    cluster = {"POD_NAME": "train-0", "POD_NAMESPACE": "vision", "NODE_NAME": "n1", "HF_TOKEN": "abc"}
    assert dict(collect_labels(cluster)) == {"node": "n1", "pod": "train-0", "namespace": "vision"}
    monkeypatch.setenv("LOGNAME", "bob")
    assert dict(collect_labels({})) == {"user": "bob"}


def test_limits_of_a_container(tmp_path: Path) -> None:
    """A quota leaves fewer cores than the machine has."""
    assert read_quota(tmp_path) is None
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert read_quota(tmp_path) == 0.5
    assert count_allowed_cores(tmp_path) == 0.5
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert read_quota(tmp_path) is None
    (tmp_path / "memory.max").write_text("max\n")
    assert read_limit(tmp_path / "none", tmp_path / "memory.max") is None
    (tmp_path / "memory.max").write_text("1024\n")
    assert read_limit(tmp_path / "none", tmp_path / "memory.max") == 1024


def test_quota_of_the_first_control_groups(tmp_path: Path) -> None:
    """They have two files."""
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("150000\n")
    assert read_quota(tmp_path) == 1.5
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("-1\n")
    assert read_quota(tmp_path) is None
