"""What the tile of the peak memory says of the memory installed."""

from dataclasses import replace

import pytest

from gpureport import testing
from gpureport.report import build
from gpureport.report.wording.display import GAP
from gpureport.testing import analyze

GIB = 2**30


def context(*totals: float | None, reserved: tuple[int | None, ...] = (None, None)) -> str:
    """Return what stands below the peak of 40 GiB of two GPUs with so many GiB installed."""
    made = testing.recording(util=[[90.0] * 120] * 2, memory=[[40.0] * 120] * 2)
    gpus = iter(
        replace(gpu, memory_total_bytes=None if total is None else round(total * GIB), memory_reserved_bytes=kept)
        for gpu, total, kept in zip(made.run.gpus, totals, reserved, strict=True)
    )
    devices = tuple(next(gpus) if device in made.run.gpus else device for device in made.run.devices)
    run = replace(made, run=replace(made.run, devices=devices))
    content = build([(run, analyze(run))], title=None, command="", gpu_hour_price=None, version="0")
    return next(tile for tile in content.tiles if tile.label == "Peak memory").context.replace(GAP, " ")


@pytest.mark.parametrize(
    ("totals", "said"),
    [
        ((80.0, 80.0), "Of 80.0 GiB installed: 50% free"),
        # a tracker logs a share of it, from which each GPU has a total of its own
        ((80.04, 79.96), "Of 80.0 GiB installed: 50% free"),
        ((80.0, 40.0), "GPUs of several sizes"),
        ((80.0, None), "Installed memory not recorded"),
        ((None, None), "Installed memory not recorded"),
    ],
)
def test_sizes_are_several_only_where_they_differ(totals: tuple[float | None, float | None], said: str) -> None:
    """A total that was worked out differs by a little from GPU to GPU; one that was not recorded is no other size."""
    assert context(*totals) == said


def test_what_the_driver_keeps_is_left_out_where_all_gpus_tell_it() -> None:
    """Of GPUs of one size, each of which keeps as much."""
    assert context(80.0, 80.0, reserved=(GIB, GIB)) == "39.0 of 79.0 GiB usable left; 80.0 installed"
    assert context(80.04, 79.96, reserved=(GIB, None)) == "Of 80.0 GiB installed: 50% free"
