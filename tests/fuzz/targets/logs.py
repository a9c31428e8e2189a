"""Logs: each importer, host logs and training logs."""

import gzip
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from zlib import crc32

import gpureport
from tests.fuzz.families import FORMS, family
from tests.fuzz.targets.target import SAMPLES, Target

_LOG_LINES = 40
"""Lines of a sample to begin with: the longer a text, the fewer are read in a second."""
_TRAINERS = (
    '{"log_history": [{"loss": 2.5, "step": 10, "epoch": 0.5}, {"eval_loss": 2.1, "step": 20, "epoch": 1.0}]}\n',
    '{"time": 1773480420, "step": 1, "loss": 2.5}\n{"time": 1773480430, "step": 2, "loss": NaN}\n',
    "Wall time,Step,Value\n1773480420.5,1,2.5\n1773480430.5,2,2.4\n",
)


def _shorten(path: Path) -> bytes:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return b"\n".join(data.split(b"\n")[:_LOG_LINES]) + b"\n"


def _list_samples() -> Iterator[bytes]:
    """Yield one log of each form among the samples."""
    for pattern in ("*/nvidia-smi.csv", "*/*.log", "*/*.txt", "*/wandb.csv", "gpu_lost/*.gz"):
        yield from map(_shorten, sorted(SAMPLES.glob(pattern)))
    # JSON is no longer JSON when it is cut
    yield (SAMPLES / "gpustat" / "gpustat.json").read_bytes()[:6000]


def _write_gpu_log(folder: Path) -> None:
    (folder / "gpu.csv").write_bytes(_shorten(SAMPLES / "healthy" / "nvidia-smi.csv"))


def _read_family(form: str, path: Path) -> None:
    known, own = family(form)
    known.ending(path, own, crc32(path.read_bytes()))


TARGETS = (
    *(
        Target(
            name=f"log {form}",
            make_seeds=partial(family(form)[0].seeds, family(form)[1]),
            read=partial(_read_family, form),
        )
        for form in FORMS
    ),
    Target(name="log of the samples", make_seeds=lambda: [*_list_samples()], read=gpureport.read),
    Target(
        name="host log beside",
        make_seeds=lambda: [_shorten(SAMPLES / "healthy" / "host.csv")],
        read=lambda path: gpureport.read(path.parent / "gpu.csv", host=path),
        file="host.csv",
        prepare=_write_gpu_log,
    ),
    Target(
        name="training log",
        make_seeds=lambda: [_shorten(SAMPLES / "no_progress" / "training.csv"), *(text.encode() for text in _TRAINERS)],
        read=lambda path: gpureport.read(path.parent / "gpu.csv", training=path, tz="UTC"),
        file="training.csv",
        prepare=_write_gpu_log,
    ),
)
