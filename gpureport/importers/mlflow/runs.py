"""MLflow as a tracker: which store a locator means, and a run of it as `Tracked`.

MLflow's monitor reads a value, waits an interval that is stored nowhere, and logs the value with the time of logging.
So a value was read when the one before it was logged, the first one when the run started.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from gpureport.columns import FloatArray, IntArray
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers.account import list_first
from gpureport.importers.columns import extra_name
from gpureport.importers.mlflow import stores
from gpureport.importers.neptune.hardware import Hardware, NameMap, Process, Stored, find_namespaces, read_hardware
from gpureport.importers.protocol.importer import ReadOptions
from gpureport.importers.protocol.reject_reasons import NOT_SELECTED, TORN, TWICE_AT_ONCE
from gpureport.importers.protocol.tracker import RunInfo, Selection, Tracked, Tracker
from gpureport.importers.tracker_series import (
    Meaning,
    Series,
    build_device_table,
    build_tracked,
    is_measured,
    join_series,
    list_absent,
    list_rejected,
    place_on_ticks,
)
from gpureport.limits import MOST_LABELS
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.recording import HOST, Device
from gpureport.regular_files import path_exists

if TYPE_CHECKING:
    from gpureport.importers.mlflow.server import Server

Store: TypeAlias = "stores.Database | stores.Folder | Server"
PREFIX = "mlflow:"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):|(databricks)$")
_DATABASE_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_SERVERS = {"http", "https", "databricks", "databricks-uc", "uc"}
_GIVE = "give mlflow.db, a mlruns folder or an http URL"
ARTIFACT_FOLDER = "gpureport"
"""Folder of a run's artifacts in which logs are looked for and reports are put."""
PUBLISHED_PREFIX = "gpureport."
"""What the tags and metrics begin with that publishing sets."""
_LOG_SUFFIXES = (".csv", ".log", ".txt", ".out", *COMPRESSED_SUFFIXES)
_KEPT_TAGS = {"mlflow.source.git.commit", "mlflow.note.content", "mlflow.autologging"}
"""Tags of MLflow's own that describe the run; the last one names the framework it logs for."""
_HOW_TO_RECORD = (
    "record with mlflow.enable_system_metrics_logging() after pip install psutil nvidia-ml-py; a run shorter than the "
    "sampling interval of 10 s has none"
)
_FIRST_VALUE = "first value of a monitor"
"""Why a value that covers the time before a monitor began is left out."""
_METRICS = {
    "gpu utilization_percentage": Meaning("gpu_utilization_ratio", 0.01),
    "gpu memory_usage_megabytes": Meaning("gpu_memory_used_bytes", 1e6),
    "gpu memory_usage_gigabytes": Meaning("gpu_memory_used_bytes", 1e9),
    "gpu memory_usage_percentage": Meaning("gpu_memory_used_ratio", 0.01),
    "gpu memory_busy_time_percent": Meaning("gpu_memory_controller_ratio", 0.01),
    "gpu power_usage_watts": Meaning("gpu_power_watts", 1.0),
    "gpu power_usage_percentage": Meaning("gpu_power_ratio", 0.01),
    "cpu_utilization_percentage": Meaning("cpu_utilization_ratio", 0.01, primes=True),
    "system_memory_usage_megabytes": Meaning("host_memory_used_bytes", 1e6),
    "system_memory_usage_percentage": Meaning("host_memory_used_ratio", 0.01),
    "disk_usage_megabytes": Meaning("host_disk_used_bytes", 1e6),
    "disk_usage_percentage": Meaning("host_disk_used_ratio", 0.01),
    "disk_available_megabytes": Meaning("host_disk_free_bytes", 1e6),
    "network_receive_megabytes": Meaning("host_network_receive_bytes_per_second", 1e6, counts=True, primes=True),
    "network_transmit_megabytes": Meaning("host_network_transmit_bytes_per_second", 1e6, counts=True, primes=True),
}
"""What is measured; what counts does so since the monitor began."""
_NEPTUNE_PREFIXES = ("sys/", "source_code/", "monitoring/")
_NAME = re.compile(r"system/(?:(?P<node>.+)/)?(?:gpu_(?P<gpu>[0-9]{1,9})_)?(?P<what>[^/]+)")
_LATE, _NAMED = 1.5, 3
"""Between ticks more than this many medians apart, no monitor ran (pragmatic); names that a note lists at most."""


def _holds(path: Path) -> bool:
    return stores.is_file_store(path) if path.is_dir() else path.is_file() and stores.is_mlflow_database(path)


def is_store_scheme(scheme: str) -> bool:
    """Return whether URLs of a scheme name only MLflow stores; `file:` may name any folder."""
    return scheme.partition("+")[0] in {"sqlite", *_DATABASE_SERVERS, *_SERVERS}


def refuse_database_server(scheme: str, store: str) -> None:
    """Refuse a database server as a store, by its URL's scheme, with or without a driver after `+`."""
    if scheme.partition("+")[0] in _DATABASE_SERVERS:
        what = "a database server is not opened directly: that could change its schema"
        hint = "run `mlflow server --backend-store-uri ...`, give its http URL"
        raise SourceError(re.sub(r"(?<=://)[^/@]*@", "", store), what, hint, code="database_server")


def open_store(store: str) -> Store:
    """Open a store by its path or URL; for an empty one, that which MLflow would use here."""
    usual = (name for name in ("mlflow.db", "mlruns") if Path(name).exists())
    store = store or os.environ.get("MLFLOW_TRACKING_URI") or next(usual, "mlflow.db")
    match = None if path_exists(store) else _SCHEME.match(store)
    scheme = (match[1] or match[2]).lower() if match else ""
    refuse_database_server(scheme, store)
    if scheme in _SERVERS:
        from gpureport.importers.mlflow.server import Server, SignedServer

        signed = (
            os.environ.get("MLFLOW_TRACKING_AUTH") or os.environ.get("MLFLOW_TRACKING_AWS_SIGV4", "").lower() == "true"
        )
        return SignedServer(store) if signed or not scheme.startswith("http") else Server(store)
    # three slashes before a relative path of sqlite, four before an absolute one
    paths = {
        "": store,
        "sqlite": unquote(store.partition(":")[2].removeprefix("///")),
        "file": unquote(re.sub("^file:(//[^/]*)?", "", store, flags=re.IGNORECASE)),
    }
    if scheme not in paths:
        raise SourceError(store, f"no store of MLflow begins with {scheme}:", _GIVE, code="unknown_scheme")
    path = Path(paths[scheme]).expanduser()
    if not path.exists():
        raise SourceError(str(path), "no MLflow database or mlruns folder here", _GIVE, code="no_mlflow_store")
    if path.is_dir() and not stores.is_file_store(path):
        hint = next((f"give {each}" for each in sorted(path.iterdir()) if _holds(each)), _GIVE)
        raise SourceError(str(path), "the folder holds no runs of MLflow", hint, code="no_runs")
    return stores.Folder(path, store) if path.is_dir() else stores.Database(path, store)


class Name(NamedTuple):
    """A system metric's name: its node (None for the only one), GPU (None for the machine), and what it measures."""

    key: str
    node: str | None
    gpu: int | None
    meaning: Meaning


def _parse_names(keys: Iterable[str]) -> list[Name]:
    """Return the parsed names of system metrics, without other names; what is unknown becomes an extra column.

    In an unknown name, the part before the last slash is a node only if a known name has it.
    """
    parsed = []
    for match in filter(None, map(_NAME.fullmatch, keys)):
        gpu, what = int(match["gpu"]) if match["gpu"] else None, match["what"]
        parsed.append((match[0], match["node"], gpu, what, _METRICS.get(what if gpu is None else f"gpu {what}")))
    nodes = {None, *(node for _, node, _, _, meaning in parsed if meaning)}
    # their monitor takes 500 W as every GPU's limit
    of_amd = {(node, gpu) for _, node, gpu, what, _ in parsed if what == "memory_usage_gigabytes"}
    found = []
    for key, node, gpu, what, meaning in parsed:
        if node not in nodes:
            found.append(Name(key, None, None, Meaning(extra_name(key.removeprefix("system/")), 1.0)))
        elif meaning is None or (what == "power_usage_percentage" and (node, gpu) in of_amd):
            found.append(Name(key, node, gpu, Meaning(extra_name(what), 1.0)))
        else:
            found.append(Name(key, node, gpu, meaning))
    return found


class _Found(NamedTuple):
    """A run's rows, and what became of its points: counted by reason, `absent` by name and reason.

    `late` holds the delay from reading to logging, in microseconds; `shared` names the nodes on which
    several processes logged the same names at the same time.
    """

    tables: dict[Device, pa.Table]
    rejected: Counter[str]
    absent: Counter[tuple[str, str]]
    late: list[IntArray]
    shared: list[str]


def _add_node(
    found: _Found, names: Sequence[Name], points: Mapping[str, Series], started: int | None, options: ReadOptions
) -> None:
    series = [points[name.key] for name in names]
    ticks, values = place_on_ticks(series)
    every = join_series(series)
    writers = _assign_writers(every.steps[np.unique(every.times, return_index=True)[1]])
    order = np.argsort(writers, kind="stable")
    # where a process began to record; only the first began with the run
    logged, begins = ticks[order], np.diff(writers[order], prepend=-1) != 0
    monitors = np.split(logged, np.flatnonzero(begins)[1:])
    read = np.concatenate([_find_read_times(each, None if place else started) for place, each in enumerate(monitors)])
    found.late.append(logged - read)
    spans = sorted((int(each[0]), int(each[-1])) for each in monitors)
    if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
        found.shared.append(names[0].node or "the machine")
    found.rejected[TWICE_AT_ONCE] += sum(len(each.times) - len(np.unique(each.times)) for each in series)
    held = dict(zip(names, values[:, order], strict=True))
    for name, each in held.items():
        if name.meaning.counts:
            # a count that falls is that of another process
            begins |= np.diff(each, prepend=np.nan) < 0
    seconds = np.diff(read, prepend=read[0]) / 1e6
    seconds[seconds <= 0] = np.nan
    for gpu in sorted({name.gpu for name in names}, key=lambda each: (each is None, each or 0)):
        own = {name: each for name, each in held.items() if name.gpu == gpu}
        if gpu is not None and options.gpus is not None and gpu not in options.gpus:
            found.rejected[NOT_SELECTED] += int((~np.isnan([*own.values()])).sum())
            continue
        columns = {}
        for name, each in own.items():
            meaning = name.meaning
            rate = np.diff(each, prepend=np.nan) / seconds if meaning.counts else each
            if meaning.primes:
                # it speaks of the time before the monitor began
                found.absent[name.key, _FIRST_VALUE] += int((~np.isnan(each[begins])).sum())
                rate = np.where(begins, np.nan, rate)
            columns[meaning.metric] = rate * meaning.factor
        device = _describe_device(names[0].node, gpu, columns)
        table = build_device_table(device.id, logged if options.as_logged else read, columns)
        if len(table):
            found.tables[device] = table


def _assign_writers(steps: "FloatArray | IntArray") -> IntArray:
    """Return the number of the monitor that logged each tick, from 0, by the ticks' steps.

    A monitor counts ticks as steps. If several log the same names, steps repeat. A tick belongs to the monitor
    whose last step is the one before, else to one with a lower step; of several, the longest waiting.
    """
    found = np.zeros(len(steps), dtype=np.int64)
    if len(np.unique(steps)) == len(steps):
        return found
    last: list[int] = []
    latest: list[int] = []
    for place, step in enumerate(steps.tolist()):
        waiting = [writer for writer, known in enumerate(last) if known == step - 1]
        waiting = waiting or [writer for writer, known in enumerate(last) if known < step]
        writer = min(waiting, key=latest.__getitem__, default=len(last))
        last[writer : writer + 1], latest[writer : writer + 1] = [step], [place]
        found[place] = writer
    return found


def _find_read_times(logged: IntArray, started: int | None) -> IntArray:
    # whole milliseconds, in which MLflow counts
    usual = int(np.median(np.diff(logged)) // 1000) * 1000 if len(logged) > 1 else 0
    before = np.append(logged[0] - usual if started is None else min(started, logged[0]), logged[:-1])
    return np.where(logged - before > _LATE * usual, logged - usual, before) if usual else before


def _describe_device(node: str | None, gpu: int | None, columns: Mapping[str, FloatArray]) -> Device:
    own, scope = (HOST, "host") if gpu is None else (f"gpu:{gpu}", "gpu")
    memory = _derive_total(columns.get(f"{scope}_memory_used_bytes"), columns.get(f"{scope}_memory_used_ratio"))
    return Device(
        id=own if node is None else f"{node}/{own}",
        index=gpu,
        node=node,
        memory_total_bytes=None if memory is None else round(memory),
        power_limit_watts=_derive_total(columns.get("gpu_power_watts"), columns.get("gpu_power_ratio")),
    )


def _derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
    """Return the total that values are shares of, by the largest shares; None if rounding leaves it open.

    MLflow rounds per cent to one decimal; totals that may be over 2 % off are not derived (pragmatic).
    """
    if values is None or shares is None:
        return None
    known = ~np.isnan(values) & (np.nan_to_num(shares) > 0)
    if not known.any() or (largest := float(shares[known].max())) * 0.02 < 0.0005:  # noqa: PLR2004 - as above
        return None
    surest = known & (np.nan_to_num(shares) >= 0.9 * largest)
    return float(np.median(values[surest] / shares[surest]))


def _read_neptune(
    points: Mapping[str, Series], params: Mapping[str, str], gpus: tuple[int, ...] | None
) -> tuple[set[str], Hardware]:
    """Return the series that Neptune's client recorded, and what they hold of hardware.

    Its exporter loads them into MLflow under the original names. That client drops zeros, put back here, and stamps
    values when read. Each process becomes a stage.
    """
    spaces = [space for space in find_namespaces(points, params, NameMap()) if space.client]
    run = Stored(key="", id="", series=dict(points))
    processes = [Process(run, space, params.get(f"{space.path}/hostname", "")) for space in spaces]
    return {path for space in spaces for path in space.leaves}, read_hardware(processes, gpus)


def record_run(store: Store, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    """Return a store's content of a run, with the logs among its artifacts."""
    locator = f"mlflow:{store.where}#{info.id}"
    held, params, tags, torn = store.read(info)
    if max(len(params), len(tags)) > MOST_LABELS:
        what = f"it has more than {MOST_LABELS:,} params or tags"
        raise SourceError(locator, what, "leave out the run", code="too_many_labels")
    # figures that were published on the run are no measurements of it
    points = {key: one for key, one in held.items() if len(one.times) and not key.startswith(PUBLISHED_PREFIX)}
    for key, one in points.items():
        if key.startswith(stores.HARDWARE_PREFIXES):
            # no measurement reaches MOST
            one.values[~is_measured(one.values)] = np.nan
    found = _Found({}, Counter({TORN: torn}), Counter(), [], [])
    names = _parse_names(points)
    for node in dict.fromkeys(name.node for name in names):
        _add_node(found, [name for name in names if name.node == node], points, info.started, options)
    moved, neptune = _read_neptune(points, params, options.gpus)
    found.rejected.update(neptune.rejected)
    # GPUs by number before the machines, each by node
    tables = {each: found.tables[each] for each in sorted(found.tables, key=lambda each: each.index is None)}
    for gpu in neptune.blocks:
        device = neptune.describe(gpu)
        if device.id not in {each.id for each in found.tables} and len(table := neptune.build_table(gpu)):
            tables[device] = table
    zeros = neptune.count("imputed")
    if selection.require_hardware and not tables:
        raise SourceError(locator, "no hardware series in this run", _HOW_TO_RECORD, code="no_hardware_series")
    notes = [f"Read from a {store.kind} of MLflow{store.version and f' ({store.version})'}, status {info.status}."]
    notes += [*_describe_run(info, found, tables, options, zeros if moved else None)]
    attachments: dict[str, Path] = {}
    try:
        attachments = store.artifacts(info, ARTIFACT_FOLDER, _LOG_SUFFIXES)
    except SourceError as error:
        notes.append(f"Artifacts of the run could not be looked through: {error.what}.")
    for key, one in points.items():
        found.absent[key, "not a number"] += int(np.isnan(one.values).sum())
    metrics = {key: one for key, one in points.items() if not key.startswith("system/") and key not in moved}
    lines = sum(len(one.times) for key, one in points.items() if key not in metrics) + torn
    first = sum(count for (_, reason), count in found.absent.items() if reason == _FIRST_VALUE)
    quality = Quality(
        lines=lines,
        rows_kept=lines - first - found.rejected.total(),
        noise=first,
        rejected=list_rejected(found.rejected),
        absent_cells=list_absent(dict(sorted(found.absent.items()))),
        imputed_points=zeros,
        notes=tuple(notes),
    )
    last = {key: int(one.times[-1]) // 1000 for key, one in points.items()}
    left_out = ("mlflow.", PUBLISHED_PREFIX)
    own = {key: text for key, text in tags.items() if key in _KEPT_TAGS or not key.startswith(left_out)}
    # root is nobody in particular
    user = {"user": tags["mlflow.user"]} if tags.get("mlflow.user", "root") != "root" else {}
    more: dict[str, Any] = {"attachments": tuple(attachments.items())}
    if info.started is not None and not moved:
        # for MLflow, a run from Neptune starts when it was loaded
        more["lasted"] = info.started, info.ended or max(last.values(), default=0) * 1000
    counts = {key: len(one.times) for key, one in points.items()}
    return build_tracked(
        locator,
        tables,
        metrics,
        name=info.name or info.id,
        quality=quality,
        throughput=selection.throughput,
        state=(info.status, info.ended and info.ended // 1000, info.name, counts, last, params, own),
        stages=neptune.list_stages(),
        params=tuple(pair for pair in params.items() if not (moved and pair[0].startswith(_NEPTUNE_PREFIXES))),
        tags=tuple((user | own).items()),
        more=more,
    )


def _describe_run(
    info: RunInfo, found: _Found, devices: Iterable[Device], options: ReadOptions, zeros: int | None
) -> Iterator[str]:
    if info.deleted:
        yield "The run was deleted in MLflow; it is read because it was named by its id."
    if not info.finished:
        killed = "it was still running, or its process was killed"
        yield f"The run has no end in MLflow: {killed}; it ends with its last sample."
    if not devices:
        yield f"No system metrics in this run: {_HOW_TO_RECORD}."
    if derived := [each.id for each in devices if each.memory_total_bytes or each.power_limit_watts]:
        yield f"Derived from a value and its share, not recorded: memory and limits of {list_first(derived, _NAMED)}."
    if zeros is not None:
        yield (
            "The run came from Neptune: its hardware series are those of Neptune's client, stamped when read, perhaps "
            f"in local time of the machine that exported it. {zeros} values of 0 that the client drops were put back."
        )
    if found.late:
        late = float(np.median(np.concatenate(found.late))) / 1e6
        moved = f"all of them were moved back, by {late:.2f} s at the median"
        moved = "as --mlflow-raw-times says, they stay there" if options.as_logged else moved
        yield f"MLflow stamps a system metric when it logs it, one interval after it was read: {moved}."
    if found.shared:
        yield (
            f"Several processes recorded the same names at the same time on {list_first(found.shared, _NAMED)}: their "
            "samples were told apart by their steps and are all kept. If they ran on several machines, GPU 0 mixes "
            "those of all; give each a node id."
        )


MLFLOW = Tracker(
    kind="mlflow",
    title="MLflow",
    holds=_holds,
    open=lambda store, *_: open_store(store),
    record=record_run,
    keeps_files=stores.keeps_artifacts,
    refuse_folder=partial(stores.refuse_artifacts, wanted="mlflow:STORE"),
)
