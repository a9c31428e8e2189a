"""Damages recordings of tools other than nvidia-smi at random and reads them, as `mutations` does with nvidia-smi's."""

import random
from pathlib import Path

from gpureport.errors import GpureportError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.protocol.column_map import MappedColumn, Mapping
from tests.fuzz.mutations import LARGEST, MUTATIONS
from tests.importers import other_tools

MAP = Mapping(
    columns=(
        MappedColumn(heading="GPU0 power", metric="gpu_power_watts", unit="W", gpu=0),
        MappedColumn(heading="GPU1 power", metric="gpu_power_watts", unit="W", gpu=1),
        MappedColumn(heading="RAM", metric="host_memory_used_bytes", unit="MiB", gpu=None),
    ),
    time="when",
    format="epoch_s",
)
_ALL = {"DCGM_FI_DEV_GPU_UTIL_RATIO": ["0", "1"], "DCGM_FI_DEV_XID_ERRORS": ["0", "79"], "DCGM_FI_DEV_FB_USED": ["1"]}
FORMS: dict[str, tuple[str, ...]] = {
    "gpustat": (other_tools.gpustat_log(3), other_tools.gpustat_log(12, indent=None)),
    "nvitop": (
        other_tools.nvitop_csv(12),
        *(p.read_text() for p in sorted(Path("tests/readers/pairs/nvitop").resolve().glob("captured_*.csv"))),
    ),
    "dmon": (other_tools.dmon_log(10), other_tools.dmon_log(10, stamped=True)),
    "prometheus": (
        other_tools.prometheus_answer(DCGM_FI_DEV_GPU_UTIL=[str(n) for n in range(20)]) * 2,
        other_tools.prometheus_answer(**_ALL),
    ),
    "field_csv": (other_tools.long_csv(6), other_tools.wide_csv(12)),
    "wandb": (other_tools.wandb_csv(20), other_tools.wandb_lines(20)),
    "mapped": (other_tools.wrapper_csv(20),),
}
"""Recordings of each form that are damaged."""
_TOKENS = (
    *(b"[", b"]", b"{", b"}", b'"', b'\\"', b"null", b"NaN", b"Infinity", b"-Infinity", b"true", b"1e999", b"#Entity "),
    *(
        b"GPU-I 0 ",
        b"9" * 5000,
        b"[" * 3000,
        b"9223372036854775794",
        b"N/A",
        b"\xc2\xb0C",
        b"/mean",
        b"1,024",
        b": ",
        b"%",
    ),
)


def seeds(form: str) -> list[bytes]:
    """Return the recordings of a form that are damaged."""
    return [text.encode() for text in FORMS[form]]


def mutated(form: str, number: int) -> bytes:
    """Return the case of a number: a recording damaged one to six times."""
    chance = random.Random(f"{form} {number}")
    data = chance.choice(seeds(form))
    for _ in range(chance.randint(1, 6)):
        if chance.random() < 0.3:
            place = chance.randrange(len(data) + 1)
            data = data[:place] + chance.choice(_TOKENS) + data[place:]
        else:
            data = chance.choice(MUTATIONS)(data or b"\n", chance)
    return data[:LARGEST]


def ending(path: Path, form: str, number: int) -> str:
    """Read a case and return how that ended: `read`, or the error's class.

    Raises:
        AssertionError: when lines are not accounted for; and whatever the project does not raise itself.
    """
    mapping = MAP if form == "mapped" else None
    options = ReadOptions(interval=1.0 if number % 3 else None, map=mapping)
    try:
        (inputs,) = find_runs(path, kind="mapped" if mapping else None)
        recording = Reading(inputs, options, Labels()).recording()
    except GpureportError as error:
        return type(error).__name__
    assert recording.run.quality.accounted, recording.run.quality
    assert len(recording.series) == recording.run.quality.rows_kept
    return "read"
