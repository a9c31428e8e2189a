"""Finds logs and the labels beside them, and chooses an importer by their content."""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpureport import record_folder, regular_files
from gpureport.data_quality import Quality
from gpureport.errors import SourceError
from gpureport.importers import HOST_IMPORTERS, IMPORTERS, LOCATORS, TRACKERS, TRAINING
from gpureport.importers.protocol import HEAD_BYTES, RUN_ID, SEARCHED_BYTES, Importer, Input, Tracker
from gpureport.importers.source_text import FileState, RawFile, archive_kind, find_state
from gpureport.importers.source_text import head as read_head
from gpureport.metrics import find_gpu
from gpureport.names import override_pairs
from gpureport.parsing import MOST_PIPE_BYTES, parse_json
from gpureport.places import is_bucket_url
from gpureport.recording import Run, Work
from gpureport.recording_advice import RECORDS_ONE
from gpureport.regular_files import UnsafeFileError, is_folder, open_pipe, path_exists, walk_folder

if TYPE_CHECKING:
    from gpureport.importers.labels import LabelTable

_BINARY = 0.01
"""Maximum share of undecodable characters in a text."""
_EMISSIONS = b"timestamp,project_name,run_id,"
_STORES = (b"SQLite format 3\0", b"PAR1", b'{"obj"', b"JobID|", _EMISSIONS, b"task_name," + _EMISSIONS)
"""First bytes of tracker files: a database, Parquet, Neptune's operations, and tables of runs."""
_STORED = re.compile(r"meta\.yaml|data-\d+\.log|emissions.*\.csv|.+\.(?:db|sqlite3?|parquet(?:\.tmp)?)")
"""Matches the name of at least one file in every tracker's store."""
_OF_GPUS = re.compile(rb"gpu|cuda|dcgm|nvidia|gr3d|used_memory", re.IGNORECASE)
"""Every log from a tool other than nvidia-smi contains at least one of these words."""
_USUAL_NAMES = {"nvidia-smi", "nvidia_smi", "gpu", "host"}
_COMPRESSED = "|".join(suffix.removeprefix(".") for suffix in record_folder.COMPRESSED_SUFFIXES)
_SUFFIX = re.compile(rf"\.(?:{_COMPRESSED}|csv|log|txt|out|\d+)$|[-_.]\d{{8}}(?:[-_T]?\d{{4,6}})?$", re.IGNORECASE)
_MOST_LABEL_BYTES = 2**20
_NO_LOGS = {"output.log", ".md", ".json", ".toml", ".html", ".pdf", ".png", ".svg", ".py", ".parquet"}


def find_tracker(source: str) -> Tracker | None:
    """Return the tracker of a store, given its locator or path, which may end with `#` and a run."""
    store = _find_store_path(source) or str(hold_stream(source) or source)
    if not source.startswith(LOCATORS) and not _may_be_store(Path(store)):
        return None
    return next((each for each in TRACKERS if each.claims(store)), None)


def _may_be_store(path: Path) -> bool:
    with suppress(OSError):
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(4096).lstrip()
            # an empty file's name may make it a store, and tables of runs may be compressed
            return not head or head.startswith(_STORES) or read_head(RawFile(path), 64).startswith(_STORES)
        return path.is_dir() and any(_STORED.fullmatch(name) for _, _, names in walk_folder(path) for name in names)
    return True


def names_run(source: str) -> bool:
    return bool(_find_store_path(source)) and find_tracker(source) is not None


def _find_store_path(source: str) -> str:
    path, _, run = source.rpartition("#")
    is_path = path and run and not source.startswith(LOCATORS) and path_exists(path) and not path_exists(source)
    return path if is_path else ""


def describe_stores(folder: str | Path) -> str:
    """Return a hint that names the trackers' stores in a folder, or "" if there are none."""
    paths = sorted(Path(folder).iterdir()) if is_folder(folder) else []
    found = [f"{path}, which contains {each.title} runs" for path in paths if (each := find_tracker(str(path)))]
    return f"give {', or '.join(found)}" if found else ""


def identify(source: str, kind: str | None = None, *, beside: bool = False) -> Input:
    path = _find_file(source)
    file = RawFile(path)
    head = read_head(file, HEAD_BYTES)
    if not head and file.account.damage:
        what = f"{file.account.damage} before its first line"
        raise SourceError(source, what, "copy or compress it again", code="damaged_archive")
    if len(head) < HEAD_BYTES and not head.strip(b"\0\t\r\n "):
        raise SourceError(
            source, "the file is empty, or contains only blank lines or NUL bytes", RECORDS_ONE, code="empty_file"
        )
    found = (IMPORTERS[kind] if kind in IMPORTERS.kinds else None) if kind else _recognise(file, head, beside=beside)
    if not kind and (packed := archive_kind(file)):
        raise SourceError(source, packed, "unpack it and give its files, or leave it out", code="archive_of_files")
    if found is None:
        other = _recognise(file, head, beside=not beside)
        from gpureport.importers.refusals import explain

        known, advice, code = explain(path.name, head, beside=beside, is_other=other is not None)
        raise SourceError(source, known, advice, code=code)
    return Input(path, found, source, beside)


def identify_companion(path: str) -> Input:
    try:
        return identify(path, beside=True)
    except SourceError:
        with suppress(SourceError):
            return identify(path)
        raise


def _find_file(source: str) -> Path:
    if source == "-" or path_exists(source):
        return take_stream(source) or Path(source)
    hint = "check the path"
    if "://" in source and not is_bucket_url(source):
        hint = "write mlflow: before the address of an MLflow store; logs are read from a path, s3://, gs:// or az://"
    elif path := _find_store_path(source):
        hint = f"only the path of a tracker's store may be followed by # and a run; {path} is not one"
    raise SourceError(source, "no such file", hint, code="no_such_file")


_STREAMS: dict[str, Path] = {}


def hold_stream(source: str) -> Path | None:
    """Return a file with the content of a pipe or standard input, or None for other sources."""
    is_stream = source == "-" or (path_exists(source) and not is_folder(source))
    if is_stream and not Path(source).is_file() and source not in _STREAMS:
        _STREAMS[source] = _spool(source)
    return _STREAMS.get(source)


def take_stream(source: str) -> Path | None:
    hold_stream(source)
    return _STREAMS.pop(source, None)


def _spool(source: str) -> Path:
    if source == "-" and sys.stdin is None:
        raise SourceError(source, "standard input is closed", "give a file, or a pipe", code="no_standard_input")
    path = regular_files.make_temporary_folder() / "stream"
    try:
        # a buffered read would not be interrupted by a request to end the process
        stdin = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer) if source == "-" else None
        with path.open("wb") as copy, nullcontext(stdin) if stdin else open_pipe(Path(source)) as pipe:
            while block := pipe.read(2**20):
                copy.write(block)
                if copy.tell() > MOST_PIPE_BYTES:
                    what = f"the pipe contained more than {MOST_PIPE_BYTES:,} bytes"
                    hint = "stop the program that writes to it, or give a file instead"
                    raise SourceError(source, what, hint, code="pipe_too_large")
    except UnsafeFileError as error:
        raise SourceError(source, str(error.strerror), error.hint, code="not_a_regular_file") from error
    return path


def _recognise(file: RawFile, head: bytes, *, beside: bool) -> Importer | None:
    if head.lstrip().startswith(_STORES):
        return None
    found = _ask(head, beside=beside)
    if found or len(head) < HEAD_BYTES or head.decode(errors="replace").count("\ufffd") > _BINARY * len(head):
        return found
    from gpureport.importers.refusals import thinned

    return _ask(thinned(read_head(file, SEARCHED_BYTES)), beside=beside)


def _ask(head: bytes, *, beside: bool) -> Importer | None:
    asked = HOST_IMPORTERS if beside else islice(IMPORTERS, None if _OF_GPUS.search(head) else 1)
    return next((each for each in asked if each.identify(head)), None)


@lru_cache(4096)
def _classify(path: Path, _: FileState) -> tuple[str, Importer | None]:
    file = RawFile(path)
    head = read_head(file, HEAD_BYTES)
    roles = [("gpu", False), ("host", True)]
    for role, beside in roles if _OF_GPUS.search(head) else reversed(roles):
        if (found := _recognise(file, head, beside=beside)) is not None:
            return (role, found) if archive_kind(file) is None else ("", None)
    training = TRAINING["training"]
    return ("training", training) if training.is_training_log(head) else ("", None)


def recognise_companion(path: Path) -> str | None:
    role = _classify(path, find_state(path))[0] if path.is_file() else ""
    return role if role in {"host", "training"} else None


def is_readable(path: Path) -> bool:
    with suppress(SourceError):
        return find_tracker(str(path)) is not None or bool(_classify(path, find_state(path))[0])
    return False


def list_files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.is_file() and not path.name.startswith(".")]


def list_in_folder(folder: Path, role: str, without: Collection[Path] = ()) -> Iterator[Input]:
    for path in (path for path in list_files(folder) if path not in without):
        found, importer = _classify(path, find_state(path))
        if importer is not None and found == role:
            yield Input(path, importer, str(path), beside=role != "gpu")


def list_unused_files(source: str | Path, used: Collection[Path]) -> list[Path]:
    known = {path.resolve() for path in used}
    files = list_files(Path(source)) if is_folder(source) else []
    return [path for path in files if path.resolve() not in known and not _NO_LOGS & {path.name, path.suffix.lower()}]


def list_gpu_logs(source: Path) -> list[Input]:
    """Return a folder's GPU logs at any depth, except those that a tracker keeps with a run."""
    logs: list[Input] = []
    try:
        for folder, below, _ in walk_folder(source, follows_links=True):
            # logs among MLflow's artifacts are read with their run
            left = "artifacts" if RUN_ID.fullmatch(folder.name) else ""
            below[:] = sorted(name for name in below if not name.startswith(".") and name != left)
            found = list(list_in_folder(folder, "gpu"))
            if not found and record_folder.read_run_file(folder) is not None:
                # a host log that was recorded without GPUs is a separate run
                hosts = [replace(each, beside=False) for each in list_in_folder(folder, "host")]
                found = [each for each in hosts if record_folder.name_log(each.path) == record_folder.HOST_LOG]
            logs += found
    except UnsafeFileError as error:
        raise SourceError(str(source), str(error.strerror), error.hint, code=error.code) from error
    if not logs:
        for tracker in TRACKERS:
            tracker.refuse_folder(source)
        table = next((path for path in list_unused_files(source, ()) if not is_readable(path)), None)
        if table and record_folder.name_log(table):
            identify(str(table))
        hint = f"if {table} has GPU data, give that file, not the folder, with --map" if table else RECORDS_ONE
        hint = describe_stores(source) or hint
        raise SourceError(str(source), "the folder has no GPU log", hint, code="no_log")
    return logs


def identify_training_logs(paths: Sequence[str | Path]) -> list[Input]:
    found = []
    for path in map(str, paths):
        file, training = _find_file(path), TRAINING["training"]
        head = read_head(RawFile(file), HEAD_BYTES)
        role = "" if training.is_training_log(head) else _classify(file, find_state(file))[0]
        if role in {"gpu", "host"} or not training.identify(head):
            from gpureport.importers.training import WANTED

            raise SourceError(path, "not a known training log", WANTED, code="not_a_training_log")
        found.append(Input(file, training, path))
    return found


def find_training_logs(runs: Sequence[tuple[str | Path, Sequence[Input]]]) -> list[list[Input]]:
    found: list[list[Input]] = []
    held = Counter(inputs[0].path.parent for _, inputs in runs)
    for source, inputs in runs:
        folder, used = inputs[0].path.parent, {each.path for each in inputs}
        is_alone = held[folder] == 1 and is_folder(source) and {path.parent for path in used} == {folder}
        is_alone = is_alone and not any(list_in_folder(folder, "gpu", used))
        found.append(list(list_in_folder(folder, "training", used)) if is_alone else [])
    return found


def strip_suffixes(name: str) -> str:
    while (shorter := _SUFFIX.sub("", name)) not in {name, ""}:
        name = shorter
    return name


def split_path(locator: str) -> tuple[tuple[str, ...], int]:
    """Return the parts of a log's path, without a common file name, and how many name the run."""
    path = Path(locator)
    folders = path.resolve().parent.parts[1:]
    name = strip_suffixes(path.name) if path.suffix in record_folder.COMPRESSED_SUFFIXES else path.stem
    # `base/1` needs both folders, since `fast/1` may also exist
    numbers = len(list(takewhile(str.isdecimal, reversed(folders))))
    return (folders, min(numbers + 1, len(folders))) if name in _USUAL_NAMES and folders else ((*folders, name), 1)


def derive_name(locator: str) -> str:
    parts, count = split_path(locator)
    return "/".join(parts[-count:])


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Facts about a run from the user or a file beside the logs, which are not part of its identity."""

    name: str | None = None
    step: str | None = None
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    work: Work | None = None
    gpu_model: str | None = None
    table: "LabelTable | None" = None

    def applied(self, run: Run) -> Run:
        params = override_pairs(run.params, self.params)
        tags = override_pairs(run.tags, self.tags)
        name, step, work = self.name or run.name, self.step or run.step, self.find_work(run.quality) or run.work
        named = run if self.gpu_model is None else _name_gpu_models(run, self.gpu_model)
        return self.look_up(replace(named, name=name, step=step, params=params, tags=tags, work=work))

    def find_work(self, quality: Quality) -> Work | None:
        # work stated for several runs does not apply to an unfinished run
        return None if self.work is not None and self.work.is_common and quality.unfinished else self.work

    def of_several(self) -> "Labels":
        return replace(self, work=self.work and replace(self.work, is_common=True))

    def look_up(self, run: Run) -> Run:
        if self.table is None:
            return run
        return replace(run, tags=override_pairs(run.tags, self.table.find_tags(run), self.tags))

    def filled_in(self, run: Run) -> Run:
        return replace(
            run,
            step=run.step or self.step,
            params=override_pairs(self.params, run.params),
            tags=override_pairs(self.tags, run.tags),
        )


def _name_gpu_models(run: Run, model: str) -> Run:
    known, devices, notes = find_gpu(model), list(run.devices), dict.fromkeys(run.quality.notes)
    for place, device in enumerate(devices):
        if device not in run.gpus:
            continue
        if device.model is None:
            window = known.power_window if known and device.power_window == "unknown" else device.power_window
            devices[place] = replace(device, model=model, power_window=window)
            notes[f"the GPU model {model} is from --gpu-model, since the log lacks a full name"] = None
        elif device.model.casefold() != model.casefold() and (not known or find_gpu(device.model) is not known):
            notes[f"{device.id} is recorded as {device.model}, so --gpu-model {model} is not used for it"] = None
    return replace(run, devices=tuple(devices), quality=replace(run.quality, notes=tuple(notes)))


def list_label_files(log: Path) -> list[Path]:
    """Return the files that may contain a log's labels, lowest precedence first."""
    places = (log.parent / record_folder.LABEL_FILE, log.with_suffix(".json"), log.with_name(f"{log.name}.json"))
    return [path for path in dict.fromkeys(places) if path != log]


def read_label_files(log: Path, notes: list[str]) -> Labels:
    parts: list[dict[str, str]] = [{}, {}, {}]
    for path in filter(Path.is_file, list_label_files(log)):
        content = None
        with suppress(OSError, ValueError, RecursionError):
            if path.stat().st_size <= _MOST_LABEL_BYTES:
                content = parse_json(path.read_text(encoding="utf-8-sig"), parse_number=str)
        if (found := _parse_labels(content)) is not None:
            parts = [one | other for one, other in zip(parts, found, strict=True)]
        elif path.name in {record_folder.LABEL_FILE, f"{log.name}.json"}:
            what = "a JSON object with only name, step, params and tags"
            notes.append(f"{path.name} is not read as labels, because it is damaged, too large, or not {what}.")
    own, params, tags = parts
    return Labels(name=own.get("name"), step=own.get("step"), params=tuple(params.items()), tags=tuple(tags.items()))


def _parse_labels(content: Any) -> list[dict[str, str]] | None:
    if not content or not isinstance(content, dict):
        return None
    parts = [content, content.pop("params", {}), content.pop("tags", {})]
    texts = {True: "true", False: "false"}
    if content.keys() - {"name", "step"} or not all(
        isinstance(part, dict) and all(isinstance(value, str | bool | None) for value in part.values())
        for part in parts
    ):
        return None
    return [
        {name: texts.get(value, value) for name, value in part.items() if name and value not in {None, ""}}
        for part in parts
    ]
