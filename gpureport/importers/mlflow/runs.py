"""Opens the MLflow store named by a locator, and reads a run as `Tracked`.

MLflow's monitor reads a value, waits, and then logs it with the current time. So each value was
read when the previous one was logged, and the first when the run started.
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from gpureport.columns import FloatArray, IntArray
from gpureport.data_quality import Quality, merge_quality
from gpureport.errors import SourceError
from gpureport.importers import tracker_series
from gpureport.importers.account import NOT_SELECTED, TORN, TWICE_AT_ONCE, list_first
from gpureport.importers.columns import extra_name
from gpureport.importers.mlflow import stores
from gpureport.importers.mlflow.server import Server, SignedServer
from gpureport.importers.protocol import ReadOptions, RunInfo, Selection, Tracked, Tracker
from gpureport.importers.tracker_series import Meaning, Series
from gpureport.parsing import MOST_LABELS
from gpureport.recording import HOST, Device, Source
from gpureport.regular_files import path_exists

Store: TypeAlias = stores.Database | stores.Folder | Server
_Named = dict[tuple[str, Meaning], Series]
PREFIX = "mlflow:"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):|(databricks)$")
_DATABASE_SERVERS = {"postgresql", "postgres", "mysql", "mssql", "oracle"}
_SERVERS = {"http", "https", "databricks", "databricks-uc", "uc"}
_GIVE = "give mlflow.db, an mlruns folder or an http URL"
PUBLISHED_PREFIX = "gpureport."
"""Prefix of tags and metrics that gpureport publishes."""
_KEPT_TAGS = {"mlflow.source.git.commit", "mlflow.note.content", "mlflow.autologging"}
"""MLflow's own tags that describe a run."""
_HOW_TO_RECORD = (
    "record with mlflow.enable_system_metrics_logging() after pip install psutil nvidia-ml-py; runs shorter than the "
    "10 s sampling interval have none"
)
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
_NAME = re.compile(r"system/(?:(?P<node>.+)/)?(?:gpu_(?P<gpu>[0-9]{1,9})_)?(?P<what>[^/]+)")
_LATE, _NAMED = 1.5, 3
"""Maximum distance between ticks in median intervals, and maximum number of names in a note."""


def is_store_scheme(scheme: str) -> bool:
    return scheme.partition("+")[0] in {"sqlite", *_DATABASE_SERVERS, *_SERVERS}


def refuse_database_server(scheme: str, store: str) -> None:
    if scheme.partition("+")[0] in _DATABASE_SERVERS:
        what = "database servers are not opened directly, because that could change their schema"
        hint = "run `mlflow server --backend-store-uri ...` and give its http URL"
        raise SourceError(re.sub(r"(?<=://)[^/@]*@", "", store), what, hint, code="database_server")


def open_store(store: str) -> Store:
    """Open the store at this path or URL or, if empty, the one MLflow would use here."""
    usual = (name for name in ("mlflow.db", "mlruns") if Path(name).exists())
    store = store or os.environ.get("MLFLOW_TRACKING_URI") or next(usual, "mlflow.db")
    match = None if path_exists(store) else _SCHEME.match(store)
    scheme = (match[1] or match[2]).lower() if match else ""
    refuse_database_server(scheme, store)
    if scheme in _SERVERS:
        said = os.environ.get
        signed = said("MLFLOW_TRACKING_AUTH") or said("MLFLOW_TRACKING_AWS_SIGV4", "").lower() == "true"
        return SignedServer(store) if signed or not scheme.startswith("http") else Server(store)
    # a relative path follows `sqlite:` and three slashes, an absolute path four slashes
    paths = {
        "": store,
        "sqlite": unquote(store.partition(":")[2].removeprefix("///")),
        "file": unquote(re.sub("^file:(//[^/]*)?", "", store, flags=re.IGNORECASE)),
    }
    if scheme not in paths:
        raise SourceError(store, f"no MLflow store begins with {scheme}:", _GIVE, code="unknown_scheme")
    path = Path(paths[scheme]).expanduser()
    if not path.exists():
        raise SourceError(str(path), "no MLflow database or mlruns folder here", _GIVE, code="no_mlflow_store")
    if path.is_dir() and not stores.holds_runs(path):
        hint = next((f"give {each}" for each in sorted(path.iterdir()) if stores.holds_runs(each)), _GIVE)
        raise SourceError(str(path), "the folder contains no MLflow runs", hint, code="no_runs")
    return stores.Folder(path, store) if path.is_dir() else stores.Database(path, store)


def _group_by_node(points: Mapping[str, Series]) -> dict[str | None, _Named]:
    """Return system metrics by node (None if unnamed); unknown metrics define no node."""
    matches = [match for match in map(_NAME.fullmatch, points) if match]
    known = {each[0]: _METRICS.get(f"gpu {each['what']}" if each["gpu"] else each["what"]) for each in matches}
    nodes = {None, *(match["node"] for match in matches if known[match[0]])}
    found: dict[str | None, _Named] = defaultdict(dict)
    for match in matches:
        key, (node, gpu, what) = match[0], match.group("node", "gpu", "what")
        # MLflow's monitor for AMD assumes a limit of 500 W for every GPU
        if what == "power_usage_percentage" and f"{key.removesuffix(what)}memory_usage_gigabytes" in known:
            known[key] = None
        if node not in nodes:
            node, gpu, what = None, None, key.removeprefix(stores.HARDWARE_PREFIX)
        meaning = known[key] or Meaning(extra_name(what), 1.0)
        found[node][key, meaning._replace(gpu=int(gpu) if gpu else None)] = points[key]
    return found


class _Account(NamedTuple):
    """Counts of points, with delays (`late`) and nodes with several monitors (`shared`)."""

    rejected: Counter[str]
    absent: Counter[tuple[str, str]]
    late: list[IntArray]
    shared: list[str]


def _read_node(
    node: str | None, named: _Named, started: int | None, options: ReadOptions, account: _Account
) -> Iterator[tuple[Device, pa.Table]]:
    series = [*named.values()]
    ticks, values = tracker_series.place_on_ticks(series)
    every = tracker_series.join_series(series)
    writers = _assign_writers(every.steps[np.unique(every.times, return_index=True)[1]])
    order = np.argsort(writers, kind="stable")
    # mark where each process began to record; only the first process began with the run
    logged, begins = ticks[order], np.diff(writers[order], prepend=-1) != 0
    monitors = np.split(logged, np.flatnonzero(begins)[1:])
    read = np.concatenate([_find_read_times(each, None if place else started) for place, each in enumerate(monitors)])
    account.late.append(logged - read)
    spans = sorted((int(each[0]), int(each[-1])) for each in monitors)
    if any(later[0] < earlier[1] for earlier, later in pairwise(spans)):
        account.shared.append(node or "the machine")
    account.rejected[TWICE_AT_ONCE] += sum(len(each.times) - len(np.unique(each.times)) for each in series)
    held = dict(zip(named, values[:, order], strict=True))
    for (_, meaning), each in held.items():
        if meaning.counts:
            # a count that falls comes from another process
            begins |= np.diff(each, prepend=np.nan) < 0
    seconds = np.diff(read, prepend=read[0]) / 1e6
    seconds[seconds <= 0] = np.nan
    for gpu in sorted({meaning.gpu for _, meaning in named}, key=lambda each: (each is None, each or 0)):
        own = {key: each for key, each in held.items() if key[1].gpu == gpu}
        if gpu is not None and options.gpus is not None and gpu not in options.gpus:
            account.rejected[NOT_SELECTED] += int((~np.isnan([*own.values()])).sum())
            continue
        columns = {}
        for (name, meaning), each in own.items():
            rate = np.diff(each, prepend=np.nan) / seconds if meaning.counts else each
            if meaning.primes:
                # the first value covers the time before the monitor began
                account.absent[name, "first value of a monitor"] += int((~np.isnan(each[begins])).sum())
                rate = np.where(begins, np.nan, rate)
            columns[meaning.metric] = rate * meaning.factor
        name, scope = (HOST, "host") if gpu is None else (f"gpu:{gpu}", "gpu")
        memory = _derive_total(columns.get(f"{scope}_memory_used_bytes"), columns.get(f"{scope}_memory_used_ratio"))
        device = Device(
            id=name if node is None else f"{node}/{name}",
            index=gpu,
            node=node,
            memory_total_bytes=None if memory is None else round(memory),
            power_limit_watts=_derive_total(columns.get("gpu_power_watts"), columns.get("gpu_power_ratio")),
        )
        if len(table := tracker_series.build_device_table(device.id, logged if options.as_logged else read, columns)):
            yield device, table


def _assign_writers(steps: "FloatArray | IntArray") -> IntArray:
    """Return which monitor logged each tick. A monitor's step number is its tick count."""
    found = np.zeros(len(steps), dtype=np.int64)
    if len(np.unique(steps)) == len(steps):
        return found
    # the last step of each writer, starting with the writer that has waited longest
    last: dict[int, int] = {}
    for place, step in enumerate(steps.tolist()):
        waiting = [writer for writer, known in last.items() if known == step - 1]
        found[place] = writer = next(iter(waiting or [one for one, known in last.items() if known < step]), len(last))
        last.pop(writer, None)
        last[writer] = step
    return found


def _find_read_times(logged: IntArray, started: int | None) -> IntArray:
    # MLflow records whole milliseconds
    usual = int(np.median(np.diff(logged)) // 1000) * 1000 if len(logged) > 1 else 0
    before = np.append(logged[0] - usual if started is None else min(started, logged[0]), logged[:-1])
    return np.where(logged - before > _LATE * usual, logged - usual, before) if usual else before


def _derive_total(values: FloatArray | None, shares: FloatArray | None) -> float | None:
    """Return the total that shares are relative to, or None if rounding could change it by 2%."""
    if values is None or shares is None:
        return None
    known = ~np.isnan(values) & (np.nan_to_num(shares) > 0)
    if not known.any() or (largest := float(shares[known].max())) * 0.02 < 0.0005:  # noqa: PLR2004 - as above
        return None
    surest = known & (np.nan_to_num(shares) >= 0.9 * largest)
    return float(np.median(values[surest] / shares[surest]))


def record_run(store: Store, info: RunInfo, selection: Selection, options: ReadOptions) -> Tracked:
    locator = f"mlflow:{store.where}#{info.id}"
    held, params, tags, torn = store.read(info)
    if max(len(params), len(tags)) > MOST_LABELS:
        what = f"the run has more than {MOST_LABELS:,} params or tags"
        raise SourceError(locator, what, "leave out the run", code="too_many_labels")
    # values that gpureport published to the run are not measurements
    points = {key: one for key, one in held.items() if len(one.times) and not key.startswith(PUBLISHED_PREFIX)}
    hardware = {key: one for key, one in points.items() if key.startswith(stores.HARDWARE_PREFIX)}
    for one in hardware.values():
        # no measurement reaches MOST
        one.values[~tracker_series.is_measured(one.values)] = np.nan
    account = _Account(Counter({TORN: torn}), Counter(), [], [])
    tables = dict[Device, pa.Table]()
    for node, named in _group_by_node(points).items():
        tables |= _read_node(node, named, info.started, options, account)
    notes = [f"Read from an MLflow {store.kind}{store.version and f' ({store.version})'} with status {info.status}."]
    notes += [*_describe_run(info, account, tables, options)]
    attachments: dict[str, Path] = {}
    try:
        attachments = store.artifacts(info)
    except SourceError as error:
        notes.append(f"Artifacts of the run could not be searched: {error.what}.")
    lines = sum(len(one.times) for one in hardware.values()) + torn
    first = account.absent.total()
    for key, one in points.items():
        account.absent[key, "not a number"] += int(np.isnan(one.values).sum())
    quality = Quality(
        lines=lines,
        rows_kept=lines - first - account.rejected.total(),
        noise=first,
        rejected=tracker_series.list_rejected(account.rejected),
        absent_cells=tracker_series.list_absent(dict(sorted(account.absent.items()))),
        notes=tuple(notes),
    )
    last = {key: int(one.times[-1]) // 1000 for key, one in points.items()}
    left_out = ("mlflow.", PUBLISHED_PREFIX)
    own = {key: text for key, text in tags.items() if key in _KEPT_TAGS or not key.startswith(left_out)}
    # root does not identify a person
    user = {"user": tags["mlflow.user"]} if tags.get("mlflow.user", "root") != "root" else {}
    began = info.started or min((int(one.times[0]) for one in points.values()), default=0)
    lasted, sources = (began, info.ended or max(last.values(), default=0) * 1000), tuple[Source, ...]()
    for name, path in attachments.items():
        added, logs = tracker_series.attach_log(name, path, tables, lasted, options)
        quality, sources = merge_quality([quality, added]), (*sources, *logs)
    if selection.require_hardware and not tables:
        raise SourceError(locator, "no hardware series in this run", _HOW_TO_RECORD, code="no_hardware_series")
    counts = {key: len(one.times) for key, one in points.items()}
    return tracker_series.build_tracked(
        locator,
        tables,
        {key: one for key, one in points.items() if key not in hardware},
        name=info.name or info.id,
        quality=quality,
        throughput=selection.throughput,
        state=(info.status, info.ended and info.ended // 1000, info.name, counts, last, params, own),
        params=tuple(params.items()),
        tags=tuple((user | own).items()),
        sources=sources,
    )


def _describe_run(info: RunInfo, account: _Account, devices: Iterable[Device], options: ReadOptions) -> Iterator[str]:
    if info.deleted:
        yield "The run was deleted in MLflow, but was read because its id was given."
    if not info.finished:
        killed = "it was still running or its process was killed"
        yield f"The run has no end time in MLflow, because {killed}, so it was read up to its last sample."
    if not devices:
        yield f"No system metrics in this run: {_HOW_TO_RECORD}."
    if derived := [each.id for each in devices if each.memory_total_bytes or each.power_limit_watts]:
        yield f"Memory and limits of {list_first(derived, _NAMED)} were derived from a value and its percentage."
    if account.late:
        late = float(np.median(np.concatenate(account.late))) / 1e6
        moved = f"so all timestamps were moved back by a median of {late:.2f} s"
        moved = "and --mlflow-raw-times keeps these timestamps" if options.as_logged else moved
        yield f"MLflow timestamps a system metric when it logs it, one interval after reading it, {moved}."
    if account.shared:
        where = list_first(account.shared, _NAMED)
        yield (
            f"Several processes recorded the same names at once on {where}, so their samples were told apart by "
            "step, and all were kept. If they ran on several machines, GPU 0 combines GPUs from all of them; give each "
            "machine a node id."
        )


MLFLOW = Tracker(
    kind="mlflow",
    title="MLflow",
    holds=stores.holds_runs,
    open=lambda store, *_: open_store(store),
    record=record_run,
    refuse_folder=partial(stores.refuse_artifacts, wanted="mlflow:STORE"),
)
