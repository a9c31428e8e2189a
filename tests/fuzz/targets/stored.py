"""What gpureport wrote itself and reads again: stores, histories, comparisons, folders of its recorder."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpureport
from gpureport.errors import SettingsError
from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.nightly.history import record_file
from gpureport.nightly.history.night_history import History
from gpureport.publishing.published_figures import is_comparison, read_run_figures
from gpureport.record_folder import SCHEMA as RECORDED
from gpureport.record_folder import read_run_file
from gpureport.report.formats.json import comparison_json
from gpureport.store import Store
from gpureport.store.run_selection import RunSelection, parse_condition, parse_since
from gpureport.store.stored_names import list_stored_names
from tests.fuzz.targets.target import Target
from tests.importers.written_logs import log
from tests.nightly.made import night, part

_EARLIER_KEYS = ("importer_version", "columns", "run")
"""What a `run.json` holds that was written before there were checksums."""
_CONDITIONS = (
    "tag:by=hand",
    "ended>=2026-10-14T09:30",
    "duration>1h30m",
    "gpus>=8",
    "name~night",
    "param:batch_size!=1",
)
_RECORDED = {
    "schema": RECORDED,
    "command": ["python", "train.py"],
    "host": "node1",
    "timezone": "Europe/Berlin",
    "started": 1_773_480_413_000_000,
    "ended": None,
    "exit_code": 0,
    "interval": 1.0,
    "params": {"batch_size": "64"},
    "tags": {"user": "ada"},
    "notes": ["a note"],
}


@cache
def _make_store() -> Mapping[str, bytes]:
    """Return the files of a store of one run, by their paths."""
    with TemporaryDirectory() as name:
        folder, store = Path(name), Path(name) / "store"
        (folder / "gpu.csv").write_text(log(20))
        (inputs,) = find_runs(folder / "gpu.csv")
        labels = Labels(name="old", step="a", params=(("batch_size", "64"),), tags=(("by", "hand"),))
        Store(store).write(Reading(inputs, ReadOptions(), labels), IMPORTER_VERSION)
        return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def _stored_path(file: str) -> str:
    return next(path for path in _make_store() if path.endswith(file))


def _write_store(folder: Path, *, checked: bool = True) -> None:
    for name, content in _make_store().items():
        path = folder / "store" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if checked or path.name != "run.json" else _sign(content, earlier=True))


def _sign(content: bytes, *, earlier: bool = False) -> bytes:
    """Return a `run.json` whose checksum holds, or that was written before there was one; another text as it is."""
    try:
        said: Any = json.loads(content)
        kept = {key: value for key, value in said.items() if (key in _EARLIER_KEYS if earlier else key != "sha256")}
        text = json.dumps(kept)
    except (ValueError, AttributeError, RecursionError):
        return content
    return text.encode() if earlier else json.dumps(kept | {"sha256": sha256(text.encode()).hexdigest()}).encode()


def _read_store(file: str, change: Callable[[bytes], bytes], path: Path) -> None:
    """Read a store of which one file is replaced, in every way that commands do."""
    folder = path.parent / "store"
    (folder / _stored_path(file)).write_bytes(change(path.read_bytes()))
    list_stored_names(folder)
    store = Store(folder)
    store.index()
    for entry in store.entries():
        store.intact(entry)
        recording = store.read(entry)
        len(recording.series), len(recording.training)


def _name_of_run(path: Path) -> None:
    Store(path.parent / "store").named(path.read_bytes().decode(errors="replace"))


def _select_runs(path: Path) -> None:
    text = path.read_bytes().decode(errors="surrogateescape")
    with suppress(SettingsError):
        conditions = (parse_since(text, 1_773_480_413_000_000),)
        Store(path.parent / "store").select(RunSelection(conditions=conditions))
    Store(path.parent / "store").select(RunSelection(conditions=(parse_condition(text),)))


def _read_night(path: Path) -> None:
    """Read a night under the name that its content asks for, so that not each ends there."""
    content, folder = path.read_bytes(), path.parent / "history"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    try:
        name = record_file.load_record(content).id
    except Exception:  # noqa: BLE001 - reading it as the program does tells whether that is allowed
        name = "night"
    (folder / f"{name}.parquet").write_bytes(content)
    History(path.parent).read_latest()


def _make_nights() -> list[bytes]:
    values = {"idle_ratio": 0.5, "lost_ratio": None}
    return [record_file.dump_record(night(1, part(values, params=(("a", "b"),)), label="x"))]


def _make_comparison() -> list[bytes]:
    with TemporaryDirectory() as name:
        path = Path(name) / "gpu.csv"
        path.write_text(log(100))
        (run,) = gpureport.read(path)
    return [comparison_json.render(gpureport.compare({"a": run, "b": run})).encode()]


def _read_comparison(path: Path) -> None:
    is_comparison(path)
    read_run_figures(path)


def _target(name: str, file: str, change: Callable[[bytes], bytes] = bytes, *, checked: bool = True) -> Target:
    return Target(
        name=name,
        make_seeds=lambda: [_make_store()[_stored_path(file)]],
        read=partial(_read_store, file, change),
        prepare=partial(_write_store, checked=checked),
    )


TARGETS = (
    _target("run.json", "run.json"),
    _target("run.json with its checksum", "run.json", _sign),
    _target("run.json without a checksum", "run.json", partial(_sign, earlier=True)),
    _target("store.json", "store.json"),
    _target("series of a store", "hardware.parquet"),
    _target("series without a checksum", "hardware.parquet", checked=False),
    Target(name="name of a run", make_seeds=lambda: [b"old"], read=_name_of_run, prepare=_write_store),
    Target(
        name="conditions on runs",
        make_seeds=lambda: [text.encode() for text in _CONDITIONS],
        read=_select_runs,
        prepare=_write_store,
    ),
    Target(name="night of a history", make_seeds=_make_nights, read=_read_night),
    Target(name="JSON of a comparison", make_seeds=_make_comparison, read=_read_comparison),
    Target(
        name="run.json of a recording",
        make_seeds=lambda: [json.dumps(_RECORDED).encode()],
        read=lambda path: read_run_file(path.parent),
        file="run.json",
    ),
)
