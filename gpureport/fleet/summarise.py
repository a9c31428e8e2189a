"""The summary of a run: one row per GPU, a key for its inputs, and the stored table.

A row has a value for each column of SCHEMA, or None if not recorded; a run that failed or has no GPU has one
row, without a device. Rows with equal keys are equal. The key includes the version of the analysis code, but not
labels that no rule uses, such as user, project and job.

Each run is written as soon as it is summarised. At the end, all small files are merged into the table. Two processes
may write at once: each removes only files that it has read or written, and a lost summary is recomputed.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from io import BytesIO
from math import fsum
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import parquet

import gpureport
from gpureport import names
from gpureport.analysis import RULES
from gpureport.analysis.account.selection import apply_settings, list_settings
from gpureport.analysis.job.events import is_training_name
from gpureport.analysis.job.params import find_framework, read_params
from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES, Analysis, DeviceStatistics
from gpureport.analysis.rulebook import Rule, kinds_by_gpu_time_class
from gpureport.analysis.series import MEMORY, TEMPERATURE, UTILISATION
from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.analysis.series.intervals import difference, intersection, row_spans, to_spans, total_seconds
from gpureport.comparison import gains
from gpureport.findings import Finding, Severity
from gpureport.importers.labels import expand_node_list, shorten_node
from gpureport.places import Place
from gpureport.recording import Recording, Run
from gpureport.redaction import OwnSecrets, get_own_secrets
from gpureport.settings import Settings
from gpureport.store import atomic_writes
from gpureport.store.run_records import StoredRun

Row: TypeAlias = dict[str, Any]
"""A summary with the columns of SCHEMA as keys. Times are in microseconds, and params and tags are pairs."""
_TEXT = pa.dictionary(pa.int32(), pa.string())
_FINDING = pa.struct(
    [
        *((name, pa.string()) for name in ("kind", "cause", "severity")),
        ("count", pa.int32()),
        ("lost_gpu_seconds", pa.float64()),
        ("fingerprint", pa.string()),
        ("is_consequence", pa.bool_()),
        ("steps", pa.list_(pa.string())),
    ]
)
"""One run's findings of the same kind, cause and devices, limited to one GPU.

`lost_gpu_seconds` is the most that this GPU may have lost, and `steps` lists what may recover it, best first.
The loss of a consequence is part of the loss of the finding that caused it.
"""
CLASS_COLUMNS = {name: f"{name}_seconds" for name in GPU_TIME_CLASSES}
"""The column of each class of GPU time; together they cover the time from first to last sample."""
_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("key", pa.string()),
    ("run_id run_name source step node device uuid model", _TEXT),
    ("started ended", pa.timestamp("us")),
    ("timezone", _TEXT),
    (" ".join(("observed_seconds", *CLASS_COLUMNS.values(), "lost_seconds energy_joules utilisation")), pa.float64()),
    ("memory_peak_bytes memory_total_bytes", pa.int64()),
    ("findings", pa.list_(_FINDING)),
    ("not_judged", pa.list_(pa.string())),
    ("held_seconds max_temperature_celsius heat_slowed_seconds hardware_slowed_seconds", pa.float64()),
    ("ecc_corrected ecc_uncorrected remapped_rows", pa.int64()),
    ("gpu_lost slow_link", _TEXT),
    ("work_amount", pa.float64()),
    ("work_unit", _TEXT),
    ("params tags", pa.map_(pa.string(), pa.string())),
    ("error", _TEXT),
)
_NEVER_NULL = "key run_id run_name findings not_judged gpu_lost slow_link params tags error"
SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=name not in _NEVER_NULL.split())
        for column, kind in _COLUMNS
        for name in column.split()
    ]
)
"""Columns of the table; null means not recorded. Times without a time zone are local, as in `Run`."""
FORMAT = 1
"""Version of the layout. 1 (2026-11): a row for each run and GPU."""
_KEY = b"gpureport.fleet"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, pa.ArrowException)
_EMPTY = dict.fromkeys(SCHEMA.names) | {"gpu_lost": "not assessed", "slow_link": "not assessed", "error": ""}


def make_row(key: str, run_id: str, **known: object) -> Row:
    lists: Row = {name: [] for name in ("findings", "not_judged", "params", "tags")}
    return {**_EMPTY, **lists, "key": key, "run_id": run_id, **known}


class SummaryFile:
    """The summaries in a store; `path` is the table, and `damaged` lists files that `load` could not read."""

    def __init__(self, store: Place) -> None:
        self._folder = store / "fleet"
        self._parts = self._folder / "parts"
        self.path = self._folder / "summaries.parquet"
        self.damaged: list[Place] = []
        self._found: list[Place] = []
        self._loaded: list[Row] = []

    def load(self) -> list[Row]:
        self._found = sorted(self._parts.glob("[!.]*.parquet"))
        for path in (self.path, *self._found):
            if path.exists():
                try:
                    self._loaded += _load_rows(path.read_bytes())
                except _DAMAGED:
                    self.damaged.append(path)
        return self._loaded

    def add(self, rows: Sequence[Row]) -> None:
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._parts.mkdir(parents=True, exist_ok=True)
            path = self._parts / f"{rows[0]['run_id']}.parquet"
            atomic_writes.write_bytes(path, _dump_rows(rows), self._parts)
        self._found.append(path)

    def replace(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=_sort_key)
        if ordered == self._loaded and self.path.exists() and not self._found:
            return
        content = _dump_rows(ordered)
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
            for folder in (self._folder, self._parts):
                atomic_writes.remove_stale_files(folder)
            atomic_writes.write_bytes(self.path, content, self._folder)
            for path in self._found:
                path.unlink(missing_ok=True)


def _sort_key(row: Row) -> tuple[int, str, int, str]:
    device = row["device"] or ""
    return row["started"] or 0, row["run_id"], len(device), device


def _dump_rows(rows: Sequence[Row]) -> bytes:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA).replace_schema_metadata({_KEY: str(FORMAT).encode()})
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _load_rows(content: bytes) -> list[Row]:
    """Files from earlier versions may lack newer columns."""
    file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    version = int((file.schema_arrow.metadata or {}).get(_KEY, b"0"))
    if version != FORMAT:
        raise ValueError(f"format {version} is not {FORMAT}")
    table = file.read()
    for field in SCHEMA:
        if field.nullable and field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    # read times as integers, as those without a zone would become naive datetimes
    plain = [pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field for field in SCHEMA]
    rows: list[Row] = table.select(SCHEMA.names).cast(pa.schema(plain)).to_pylist()
    return rows


# --- the rows of a run

_PACKAGE = Path(gpureport.__file__).parent
_PARTS = ("*.py", "*.toml", "analysis/**/*.py", "analysis/**/*.toml", "comparison/gains.py", "fleet/summarise.py")
"""The code that determines a row: the analysis, the types it uses, and the summary."""
_CLASSES = {kind: name for name, kinds in kinds_by_gpu_time_class(RULES).items() for kind in kinds}
"""The class of GPU time for each kind that has one."""
_FIRST_YEAR = 365 * 86_400_000_000
_CONTEXT = 0.05
"""Share of memory above which a process occupies a GPU; a CUDA context alone needs less."""
_ERRORS = {
    "ecc_corrected": ("gpu_ecc_corrected_total", "gpu_ecc_single_bit_total"),
    "ecc_uncorrected": ("gpu_ecc_uncorrected_total", "gpu_ecc_double_bit_total"),
}
_REMAPPED = ("gpu_remapped_rows_correctable_total", "gpu_remapped_rows_uncorrectable_total")
_Times = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    settings: Settings
    version: str

    @property
    def rules(self) -> tuple[Rule, ...]:
        return apply_settings(RULES, self.settings)


def read_summary_settings(settings: Settings) -> SummarySettings:
    apply_settings(RULES, settings)
    rules = {name: values for name, values in settings.content.items() if name == "rules"}
    return SummarySettings(settings=Settings(file=settings.file, content=rules), version=hash_rules())


@cache
def hash_rules() -> str:
    digest = sha256(gpureport.__version__.encode())
    for path in sorted(path for part in _PARTS for path in _PACKAGE.glob(part)):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def make_keys(settings: SummarySettings) -> Callable[[StoredRun], str]:
    own = get_own_secrets()
    limits = [(rule.name, name, limit.value) for rule in settings.rules for name, limit in list_settings(rule).items()]
    shared = [settings.version, limits, *([repr(own)] if own != OwnSecrets() else [])]

    def make_key(stored: StoredRun) -> str:
        run, pairs = stored.run, stored.run.params_and_tags
        setup = repr((read_params(pairs), find_framework(pairs)))
        is_training = any(is_training_name(name) for name, _ in pairs)
        made_from = (run.id, stored.series_sha256, stored.training_sha256, stored.importer_version)
        content = [*shared, *made_from, run.params, setup, is_training]
        return sha256(json.dumps(content).encode()).hexdigest()[:32]

    return make_key


def describe_run(run: Run, key: str) -> Row:
    is_dated = not run.quality.synthetic_time and run.ended >= _FIRST_YEAR
    return make_row(
        key,
        run.id,
        source=run.sources[0].locator if run.sources else None,
        started=run.started if is_dated else None,
        ended=run.ended if is_dated else None,
        timezone=run.timezone,
        **read_labels(run),
    )


def read_labels(run: Run) -> Row:
    return {
        "run_name": run.name,
        "step": run.step,
        "params": list(run.params),
        "tags": list(run.tags),
        "work_amount": run.work.amount if run.work else None,
        "work_unit": run.work.unit if run.work else None,
    }


def apply_labels(row: Row, run: Run) -> Row:
    node, slash, _ = (row["device"] or "").rpartition("/")
    named = names.find_label(run.params_and_tags, "node")
    # joined logs that record no node are named after their files
    is_known = not slash or shorten_node(node) in map(shorten_node, expand_node_list(named or ""))
    return {**row, **read_labels(run), "node": (node or named) if row["device"] and is_known else None}


def summarise_run(recording: Recording, analysis: Analysis, key: str) -> list[Row]:
    whole = describe_run(recording.run, key)
    times = {time.device: dict(time.seconds) for time in analysis.gpu_time}
    series = (build_device_series(recording, gpu) for gpu in recording.run.gpus)
    rows = [{**whole, **_summarise_gpu(each, analysis, times)} for each in series]
    return rows or [{**whole, "not_judged": sorted(_find_unjudged(analysis, None))}]


def _find_unjudged(analysis: Analysis, device: str | None) -> set[str]:
    return {entry.kind for entry in analysis.not_judged if entry.device in {None, device}}


def _summarise_gpu(series: DeviceSeries, analysis: Analysis, times: _Times) -> Row:
    gpu, unjudged = series.device, _find_unjudged(analysis, series.device.id)
    statistics = next((one for one in analysis.statistics if one.device == gpu.id), None)
    used, heat = (statistics.metric(name) if statistics else None for name in (UTILISATION, TEMPERATURE))
    # nothing is known about a GPU without samples, or whose rows may be another GPU's
    seconds = times.get(gpu.id, {"no_samples": series.window.seconds})
    return {
        "device": gpu.id,
        "uuid": gpu.uuid,
        "model": gpu.model,
        "observed_seconds": statistics.observed_seconds if statistics else None,
        **{CLASS_COLUMNS[name]: amount for name, amount in seconds.items()},
        "held_seconds": _measure_held(series, analysis),
        "lost_seconds": fsum(amount for name, amount in seconds.items() if name in LOST_CLASSES),
        "energy_joules": _read_energy(statistics) if statistics else None,
        "utilisation": used.mean if used else None,
        "memory_peak_bytes": statistics.memory_peak_bytes if statistics else None,
        "memory_total_bytes": gpu.memory_total_bytes,
        "findings": list(_summarise_findings(analysis, gpu.id, times)),
        "not_judged": sorted(unjudged),
        "max_temperature_celsius": heat.max if heat else None,
        **_read_health(series, analysis, unjudged),
    }


def _measure_held(series: DeviceSeries, analysis: Analysis) -> float | None:
    """Return the seconds in which a process held the memory of an unused GPU, or None if unknown."""
    gpu, size = series.device.id, series.device.memory_total_bytes
    if not size or not series.is_recorded(MEMORY):
        return None
    held = row_spans(*series.averaging_windows(series.window), series.values(MEMORY) > _CONTEXT * size)
    own = [one for one in analysis.findings if gpu in one.devices and {one.kind, one.cause} & {"unused_gpu", "unused"}]
    unused = to_spans(part for one in own for part in one.intervals)
    return total_seconds(difference(intersection(held, unused), to_spans(analysis.no_job.get(gpu, ()))))


def _read_energy(statistics: DeviceStatistics) -> float | None:
    joules, counter = statistics.energy_joules, statistics.energy_counter
    if joules is not None or counter is None or counter.restarts or counter.impossible:
        return joules
    return counter.total or None


def _summarise_findings(analysis: Analysis, device: str, times: _Times) -> Iterator[Row]:
    is_too_short = gains.is_recording_too_short(analysis)
    own = [each for each in analysis.findings if not each.devices or device in each.devices]
    for fingerprint, findings in names.group_pairs((each.fingerprint, each) for each in own).items():
        worst = max(findings, key=lambda each: each.lost_gpu_seconds or 0.0)
        lost = [each.lost_gpu_seconds for each in findings if each.lost_gpu_seconds is not None]
        yield {
            "kind": worst.kind,
            "cause": worst.cause,
            "severity": max((each.severity for each in findings), key=list(Severity).index),
            "count": len(findings),
            "lost_gpu_seconds": fsum(lost) * _measure_part(worst, device, times) if lost else None,
            "fingerprint": fingerprint,
            "is_consequence": all(each.root is not None for each in findings),
            # naming GPUs only clarifies the figures
            "steps": [each.name for each in worst.steps if each.name != "name_gpus" and not (lost and is_too_short)],
        }


def _measure_part(finding: Finding, device: str, times: _Times) -> float:
    concerned = [each for each in finding.devices if each in times] or list(times)
    name = _CLASSES.get(finding.kind, "")
    whole = fsum(times[each].get(name, 0.0) for each in concerned)
    return times.get(device, {}).get(name, 0.0) / whole if whole else 1 / max(len(concerned), 1)


def _read_health(series: DeviceSeries, analysis: Analysis, unjudged: Collection[str]) -> Row:
    own = [each for each in analysis.findings if series.device.id in each.devices]
    by_kind = defaultdict(list, names.group_pairs((each.kind, each) for each in own))

    def check(kind: str, harmless: str) -> str:
        is_found = any(harmless not in {each.cause, each.severity} for each in by_kind[kind])
        return "found" if is_found else "not assessed" if kind in unjudged else "clear"

    def sum_seconds(kind: str) -> float | None:
        if not (found := by_kind[kind]) and kind in unjudged:
            return None
        return fsum(part.seconds for each in found for part in each.intervals)

    def count_errors(counters: Sequence[str]) -> int | None:
        evidence = [each for finding in by_kind["ecc_error"] for each in finding.evidence if each.metric in counters]
        if evidence:
            return int(max(each.observed for each in evidence))
        return 0 if "ecc_error" not in unjudged and any(map(series.is_recorded, counters)) else None

    remapped = [series.known_values(name)[-1] for name in _REMAPPED if series.is_recorded(name)]
    return {
        "heat_slowed_seconds": sum_seconds("thermal_throttle"),
        "hardware_slowed_seconds": sum_seconds("hw_throttle"),
        **{name: count_errors(counters) for name, counters in _ERRORS.items()},
        "remapped_rows": int(sum(remapped)) if remapped else None,
        "gpu_lost": check("gpu_lost", "sensor"),
        "slow_link": check("pcie_degraded", Severity.INFO),
    }
