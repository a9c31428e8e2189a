"""What other tools do with a log: each a function, run as a process of its own by `ingest`.

`python -m tests.benchmarks.peers NAME LOG OUTPUT`. All but `strings` write typed Parquet, null for `[N/A]`.
"""

import io
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

NAMES = (
    "timestamp",
    "index",
    "uuid",
    "utilization",
    "memory_controller",
    "memory_used",
    "memory_total",
    "temperature",
    "power",
    "sm_clock",
    "memory_clock",
    "reasons",
)
UNITS = {
    "utilization": " %",
    "memory_controller": " %",
    "memory_used": " MiB",
    "memory_total": " MiB",
    "power": " W",
    "sm_clock": " MHz",
    "memory_clock": " MHz",
}
_PIECE = 16 * 2**20
_THREADS = 2


def strings(log: Path, output: Path) -> None:
    """Only cut the log into cells, in two threads; nothing is converted and nothing written."""
    del output
    import pyarrow as pa  # noqa: PLC0415 - what a peer imports is part of its time
    from pyarrow import csv  # noqa: PLC0415 - as above

    named = csv.ReadOptions(column_names=list(NAMES), use_threads=False)
    typed = csv.ConvertOptions(column_types=dict.fromkeys(NAMES, pa.string()))

    def cells(piece: bytes) -> int:
        return len(csv.read_csv(io.BytesIO(piece), read_options=named, convert_options=typed))

    under_way: deque[Future[int]] = deque()
    with ThreadPoolExecutor(_THREADS) as pool:
        for piece in _pieces(log):
            under_way.append(pool.submit(cells, piece))
            if len(under_way) > _THREADS:
                under_way.popleft().result()
        for each in under_way:
            each.result()


def _pieces(log: Path) -> Iterator[bytes]:
    rest = b""
    with log.open("rb") as file:
        while block := file.read(_PIECE):
            cut = block.rfind(b"\n") + 1
            yield rest + block[:cut]
            rest = block[cut:]


def polars(log: Path, output: Path) -> None:
    """Scan, strip units, cast, and sink."""
    import polars as pl  # noqa: PLC0415 - what a peer imports is part of its time

    scan = pl.scan_csv(log, infer_schema=False, new_columns=list(NAMES), null_values=[" [N/A]"])
    number = {name: pl.col(name).str.strip_suffix(unit).str.strip_chars_start() for name, unit in UNITS.items()}
    whole = [number[name].cast(pl.Int32) for name in UNITS if name != "power"]
    scan.with_columns(
        pl.col("timestamp").str.to_datetime("%Y/%m/%d %H:%M:%S%.3f", time_unit="us"),
        pl.col("index", "temperature").str.strip_chars_start().cast(pl.Int16),
        pl.col("uuid").str.strip_chars_start(),
        *whole,
        number["power"].cast(pl.Float32),
        pl.col("reasons").str.slice(3).str.to_integer(base=16),
    ).sink_parquet(output, compression="zstd", compression_level=3)


def duckdb(log: Path, output: Path) -> None:
    """Read, strip units, cast, and copy."""
    import duckdb as db  # noqa: PLC0415 - what a peer imports is part of its time

    def whole(name: str) -> str:
        return f"try_cast(trim(replace({name}, '{UNITS.get(name, '')}', '')) as integer) as {name}"

    selected = [
        "strptime(timestamp, '%Y/%m/%d %H:%M:%S.%g') as timestamp",
        "trim(uuid) as uuid",
        "try_cast(trim(replace(power, ' W', '')) as float) as power",
        "try_cast(trim(reasons) as ubigint) as reasons",
        *(whole(name) for name in ("index", "temperature", *UNITS) if name != "power"),
    ]
    columns = "{" + ", ".join(f"'{name}': 'varchar'" for name in NAMES) + "}"
    source = f"read_csv('{log}', header=true, delim=',', quote='', escape='', auto_detect=false, columns={columns})"
    connection = db.connect(config={"threads": _THREADS, "preserve_insertion_order": True})
    connection.execute(
        f"copy (select {', '.join(selected)} from {source}) "  # noqa: S608 - paths of a benchmark
        f"to '{output}' (format parquet, codec zstd, compression_level 3)"
    )


PEERS = {"strings": strings, "polars": polars, "duckdb": duckdb}

if __name__ == "__main__":
    PEERS[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
