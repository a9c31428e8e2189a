"""Damages logs of nvidia-smi at random and reads them: nothing but the project's own errors may come out."""

import bz2
import gzip
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from gpureport.errors import GpureportError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from tests.fuzz import snapshots
from tests.importers.logs.nvidia_smi.forms.monitor_logs import PUCVMET, csv, dmon, process_list
from tests.importers.written_logs import HEADER, log, row, stamp

QUERY = "query"
"""The form of CSV of `--query-gpu`."""
FORMS = (QUERY, "dmon", "pmon", "compute_apps", "mixed", *snapshots.SEEDS)
LARGEST = 100_000
"""Bytes of a log at most."""


def _monitors() -> dict[str, list[str]]:
    """Return logs of the monitors and lists of nvidia-smi, by form."""
    apps = "timestamp, gpu_name, gpu_bus_id, gpu_uuid, pid, process_name, used_gpu_memory [MiB]"
    listed = [
        f"{stamp(s)}, NVIDIA L4, 0{gpu}:00.0, GPU-{gpu}, {pid}, a, b, {pid} MiB"
        for s in range(20)
        for gpu, pid in ((0, 7), (0, 8), (1, 9))
    ]
    named = [line.replace("NVIDIA L4", f"NVIDIA {line[23:26]}") for line in log(20).splitlines()]
    instances = dmon(30, names=("mig_id", "gi_id", "ci_id", "sm", "GPM:Util")).replace(" x ", " - ")
    dmons = [
        dmon(60, 2),
        dmon(90, names=PUCVMET),
        dmon(60, stamped=False),
        csv(dmon(50, 4)),
        csv(dmon(50), header=False),
    ]
    mixed = ["epoch 1: 0.5", dmon(9), "$ nvidia-smi pmon", process_list(9, 60), *named, apps, *listed[:9]]
    return {
        "dmon": [*dmons, instances, dmon(20).replace("#Date", "#").replace("20260314", ""), dmon(5, names=("fb",))],
        "pmon": [process_list(60), process_list(60, pids=(7,)), process_list(30).replace("20260314 ", "")],
        "compute_apps": ["\n".join([apps, *listed, ""]), "\n".join([apps, *listed, apps, *listed[:7]])],
        "mixed": ["\n".join([*mixed, ""]), "\n".join(reversed(mixed)), dmon(40) + log(40), process_list(9) + dmon(9)],
    }


@cache
def seeds(form: str) -> list[bytes]:
    """Return the logs of a form that are damaged."""
    if form != QUERY:
        return [text.encode() for text in (_monitors() | snapshots.SEEDS)[form]]
    bare = "\n".join([HEADER, *(row(second).replace(" %", "").replace(" MiB", "") for second in range(60)), ""])
    masks = [f"{stamp(s)}, GPU-12345678-1234-1234-1234-12345678901{s % 2}, P{s % 9}, 0x{s:016x}" for s in range(60)]
    many = "\n".join(["timestamp, uuid, pstate, clocks_event_reasons.active", *masks, ""])
    anonymous = [f"{stamp(s, start='2026/03/14 09:00:00')}, {s % 90} %, {gpu} MiB" for s in range(30) for gpu in (1, 2)]
    ticks = "\n".join(["timestamp, utilization.gpu [%], memory.used [MiB]", *anonymous, ""])
    semicolons = log(30).replace(",", ";").replace(".", ",")
    host = "timestamp,cpu_percent,ram_used_mib\n" + "".join(f"{stamp(s)},{s}.5,1000\n" for s in range(30))
    timeless = "utilization.gpu [%], power.draw [W]\n" + "".join(f"{s} %, {s}.25 W\n" for s in range(60))
    texts = [log(60), log(40, gpus=4), bare, many, ticks, semicolons, host, timeless, log(2), log(400, gpus=4)]
    return [text.encode() for text in texts]


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _flip(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]


def _remove(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + data[place + chance.choice([1, 3, 50, 4096]) :]


def _insert(data: bytes, chance: random.Random) -> bytes:
    token = chance.choice(_TOKENS) * chance.choice([1, 1, 2, 700])
    place = chance.randrange(len(data) + 1)
    return data[:place] + token + data[place:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start:]


def _swap(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    one, other = (chance.randrange(len(lines)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _shuffle_words(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    place = chance.randrange(len(lines))
    cells = lines[place].split(b",")
    chance.shuffle(cells)
    lines[place] = b",".join(cells)
    return b"\n".join(lines)


def _encode(data: bytes, chance: random.Random) -> bytes:
    text = data.decode(errors="replace")
    return text.encode(chance.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"]))


def _compress(data: bytes, chance: random.Random) -> bytes:
    return gzip.compress(data) if chance.random() < 0.5 else bz2.compress(data)


_TOKENS = [
    *(
        b"\0",
        b"\n",
        b"\r",
        b"\r\n",
        b",",
        b";",
        b"\t",
        b'"',
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1b[4m",
        b"&",
        b"-",
        b"e9",
    ),
    *(b"[N/A]", b"[GPU is lost]", b"[", b"9999999999999999999999", b"-1 %", b"nan", b"inf", b"1e400 W", b"0x"),
    *(b"2026/03/14 09:00:00.000", b"0000/00/00 00:00:00.000", b"9999/12/31 23:59:60.999999", b"\xd9\xa3 %"),
    *(
        HEADER.encode() + b"\n",
        b"\ntimestamp, utilization.gpu [%]\n",
        b"\nindex, timestamp\n",
        b"No devices were found\n",
    ),
    *(
        b"\n# gpu    sm    fb\n# Idx     %    MB\n",
        b"\n#Date       Time        gpu        pid  type  command\n",
        b"\ngpu_uuid, pid, timestamp\n",
        b"\n0, temp, 1395544840748857, 12\n",
        b"\n$ nvidia-smi\n",
        b"20260314 09:00:00",
    ),
    *snapshots.TOKENS,
]
MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_cut, _flip, _flip, _flip, _remove, _insert, _insert, _insert, _repeat, _swap, _shuffle_words),
    *(_encode, _compress),
)


def mutated(form: str, number: int) -> bytes:
    """Return the case of a number: a log damaged one to six times."""
    chance = random.Random(number)
    data = chance.choice(seeds(form))
    for _ in range(chance.randint(1, 6)):
        data = chance.choice(MUTATIONS)(data or b"\n", chance)
    return data[:LARGEST]


def read_options(number: int) -> ReadOptions:
    """Return the options the case is read with; mostly none."""
    chance = random.Random(number + 1_000_000_000)
    return ReadOptions(
        tz=chance.choice([None, None, None, "Europe/Berlin"]),
        interval=chance.choice([None, None, 1.0]),
        gpus_per_tick=chance.choice([None, None, None, 2]),
        columns=chance.choice([None, None, None, None, ("timestamp", "utilization.gpu", "memory.used")]),
    )


def ending(path: Path, number: int) -> str:
    """Read a case and return how that ended: `read`, or the error's class.

    Raises:
        AssertionError: when lines are not accounted for; and whatever the project does not raise itself.
    """
    try:
        (inputs,) = find_runs(path)
        recording = Reading(inputs, read_options(number), Labels()).recording()
    except GpureportError as error:
        return type(error).__name__
    quality = recording.run.quality
    assert quality.accounted, quality
    assert len(recording.series) == quality.rows_kept
    return "read"
