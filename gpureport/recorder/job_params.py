"""Collects a run's configuration from outside, without importing anything from the job."""

import getpass
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import psutil

from gpureport.names import read_environment_labels
from gpureport.redaction import HIDDEN, hide_secret_value, hide_secrets

Params = Iterator[tuple[str, str]]
_PACKAGES = (
    *("torch", "tensorflow", "jax", "jaxlib", "numpy"),
    *("lightning", "pytorch-lightning", "transformers", "accelerate", "deepspeed"),
)
_ENVIRONMENT = re.compile(
    r"CUDA_VISIBLE_DEVICES|CUDA_VERSION|CUDA_DEVICE_ORDER|CUDA_LAUNCH_BLOCKING|CUDA_DEVICE_MAX_CONNECTIONS"
    r"|CUDA_MODULE_LOADING|NVIDIA_TF32_OVERRIDE|NVIDIA_VISIBLE_DEVICES|CUBLAS_WORKSPACE_CONFIG"
    r"|WORLD_SIZE|RANK|LOCAL_RANK|LOCAL_WORLD_SIZE|NODE_RANK|GROUP_RANK"
    r"|SLURM_JOB_ID|SLURM_JOB_NAME|SLURM_ARRAY_TASK_ID|SLURM_JOB_PARTITION|SLURM_NNODES|SLURM_NODEID|SLURM_NTASKS"
    r"|SLURM_CPUS_PER_TASK|OMP_NUM_THREADS|MKL_NUM_THREADS|OMP_PROC_BIND|KMP_AFFINITY"
    r"|NCCL_[A-Z0-9_]+|TORCH_NCCL_[A-Z0-9_]+|PYTORCH_CUDA_ALLOC_CONF|PYTORCH_ALLOC_CONF|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
    r"|XLA_FLAGS|XLA_PYTHON_CLIENT_PREALLOCATE|XLA_PYTHON_CLIENT_MEM_FRACTION|XLA_PYTHON_CLIENT_ALLOCATOR|JAX_PLATFORMS"
    r"|TF_XLA_FLAGS|TF_GPU_ALLOCATOR|TF_FORCE_GPU_ALLOW_GROWTH|TF_GPU_THREAD_MODE|TF_GPU_THREAD_COUNT"
    r"|TF_ENABLE_ONEDNN_OPTS|TF_NUM_INTEROP_THREADS|TF_NUM_INTRAOP_THREADS|TOKENIZERS_PARALLELISM"
)
"""Variables that may affect how GPUs are used; none contains a secret."""
_ELSEWHERE = {
    *("docker", "podman", "apptainer", "singularity", "enroot", "kubectl", "ssh"),
    *("conda", "mamba", "micromamba", "uv", "poetry", "pixi", "hatch", "pipenv", "nix", "nix-shell"),
}
"""Programs that may run a job with a Python not on the path."""
_PYTHON = re.compile(r"python(?:\d+(?:\.\d+)?)?(?:\.exe)?|pypy3?")
_ASK_VERSIONS = """
import sys
sys.path[:] = [each for each in sys.path if each]
from importlib.metadata import version
print("python", sys.version.split()[0])
for name in sys.argv[1:]:
    try:
        print(name, version(name))
    except Exception:
        pass
"""
_VERSION_LINE = re.compile(r"([A-Za-z0-9\-]+) (\S{1,64})")
_CUDA = re.compile(r"CUDA(?: \w+)? Version\s*:\s*(\d[\d.]*)")
_DRIVER = re.compile(r"(?:Driver|KMD) Version\s*:\s*(\d[\d.]*)")
_FLAG = re.compile(r"--?([A-Za-z][\w.\-]+)")
# a bare path may contain an equals sign
_ASSIGNED = re.compile(r"(?![^-+=][^=]*/.*/)(?:--?|\+{0,2})([A-Za-z][\w.\-/]*)=(.*)", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_LONGEST = 200
"""Maximum length of a value in a table, in characters."""
_PATIENCE = 10
"""Seconds to wait for a program to respond."""
_GIB = 2**30
_CGROUP = Path("/sys/fs/cgroup")


def collect_params(command: Sequence[str]) -> tuple[tuple[str, str], ...]:
    known = [each for each in sorted(os.environ.items()) if _ENVIRONMENT.fullmatch(each[0])]
    variables = [(name, hide_secret_value("", value)) for name, value in known if 0 < len(value) <= _LONGEST]
    settings = [(name, value) for _, name, value in find_settings(hide_secrets(command))]
    return tuple(dict([*settings, *_read_versions(command), *variables, *_read_place()]).items())


def find_settings(words: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield a command's options: the position of the word with the value, the name and the value (`true` if bare)."""
    for place, word in enumerate(words):
        if found := _ASSIGNED.fullmatch(word) or _FLAG.fullmatch(word):
            name, *values = found.groups()
            value = values[0] if values else _value_after(words[place + 1 :])
            if value and HIDDEN not in value and len(value) <= _LONGEST and "\n" not in value:
                yield place + (words[place + 1 : place + 2] == [value]), name.replace("-", "_"), value


def _value_after(words: Sequence[str]) -> str:
    first = words[0] if words else ""
    is_value = _NUMBER.fullmatch(first) or not first.startswith("-")
    if not first or not is_value or first.endswith((".py", ".sh")) or _ASSIGNED.fullmatch(first):
        return "true"
    more = takewhile(_NUMBER.fullmatch, words[1:]) if _NUMBER.fullmatch(first) else ()
    return " ".join([first, *more])


def _find_python(command: Sequence[str]) -> str | None:
    program = Path(command[0]).name if command else ""
    where = shutil.which(command[0]) if command else None
    if not command or program in _ELSEWHERE or _PYTHON.fullmatch(program):
        return where if _PYTHON.fullmatch(program) else None
    # programs such as torchrun are in the same folder as their Python
    beside = shutil.which("python", path=str(Path(where).parent)) if where else None
    return beside or shutil.which("python") or shutil.which("python3")


def _read_versions(command: Sequence[str]) -> Params:
    python = _find_python(command)
    for line in _ask([python, "-c", _ASK_VERSIONS, *_PACKAGES]).splitlines() if python else ():
        if found := _VERSION_LINE.fullmatch(line):
            yield f"{found[1].replace('-', '_')}_version", found[2]
    text = _ask(["nvidia-smi"])
    for name, pattern in (("driver_version", _DRIVER), ("driver_cuda_version", _CUDA)):
        if found := pattern.search(text):
            yield name, found[1]


def collect_labels(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return tags for the job's owner and location, with names from `LABEL_TAGS`.

    Without Slurm, the user is whoever runs the recorder. Root is left out, since most containers run as root.
    """
    labels = dict(read_environment_labels(variables))
    with suppress(OSError, KeyError, ImportError):
        user = labels.get("user") or getpass.getuser()
        labels |= {"user": user} if user != "root" else {}
    return tuple((name, hide_secret_value("", value)) for name, value in labels.items() if len(value) <= _LONGEST)


def _read_place() -> Params:
    commit = _ask(["git", "rev-parse", "HEAD"]).strip()
    if re.fullmatch(r"[0-9a-f]{40,64}", commit):
        changed = _ask(["git", "-c", "core.fsmonitor=false", "status", "--porcelain", "--untracked-files=no"]).strip()
        yield "git_commit", f"{commit[:12]} with changes" if changed else commit[:12]
    if (cores := count_allowed_cores()) is not None:
        yield "cpu_cores", f"{cores:g}"
    total = psutil.virtual_memory().total
    yield "memory", f"{total / _GIB:.1f} GiB"
    limit = read_limit(_CGROUP / "memory.max", _CGROUP / "memory/memory.limit_in_bytes")
    if limit is not None and limit < total:
        yield "memory_limit", f"{limit / _GIB:.1f} GiB"


def count_allowed_cores(cgroup: Path = _CGROUP) -> float | None:
    """Return how many cores the container's quota lets processes use, or None if unknown."""
    try:
        allowed = len(psutil.Process().cpu_affinity())
    except (AttributeError, psutil.Error):
        allowed = psutil.cpu_count() or 0
    quota = read_quota(cgroup)
    cores = min(allowed, quota) if allowed and quota else allowed or quota
    return None if not cores else round(cores, 2)


def read_quota(cgroup: Path) -> float | None:
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        found = (read_limit(cgroup / "cpu" / f"cpu.cfs_{name}_us") for name in ("quota", "period"))
        quota, period = (str(each) for each in found)
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None


def read_limit(*files: Path) -> int | None:
    for file in files:
        with suppress(OSError):
            text = file.read_text(encoding="utf-8").strip()
            return int(text) if text.isdigit() else None
    return None


def _ask(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the job's Python, nvidia-smi and git
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False, errors="replace"
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
