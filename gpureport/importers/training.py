"""Reads the metrics of a training loop into a long table.

A row contains a date, seconds since 1970 or since the start of the run, or only a step; steps
without times count the run's work. Printed lines must contain a step, like bars from tqdm and Keras,
dictionaries from Hugging Face, `Epoch(train) [1][50/5000]` (mmengine), `Epoch: [0][ 10/5005]`,
`iteration 10/ 1000 |` (Megatron), `iter 10:` (nanoGPT) or `step=100`. `iteration_time` is in
seconds per iteration, and `data_wait_ratio` is the share of it spent on data loading.
"""

import ast
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.errors import SourceError
from gpureport.importers import clock, tools
from gpureport.importers.account import CUT_LAST_LINE, MALFORMED, NO_TIME, Account
from gpureport.importers.protobuf import MARK, read_events
from gpureport.importers.protocol import HEAD_BYTES, Outcome, ReadOptions
from gpureport.importers.source_text import RawFile, Text, head_text
from gpureport.importers.tracker_series import Series, build_training_table
from gpureport.names import recognise_metric
from gpureport.rates import FEWEST_POINTS, count_gains
from gpureport.recording import Work

WANTED = "give the output of the training loop, or a CSV, JSON lines or event file with a step or time and a loss"
_TIMES = (
    *("wall_time", "timestamp", "datetime", "time", "date", "created_at", "elapsed", "elapsed_s"),
    *("elapsed_seconds", "elapsed_time", "relative_time", "runtime"),
)
_STEPS = ("step", "global_step", "iteration", "iter", "steps", "current_steps", "num_updates")
_WHOLE = re.compile('"(?:log_history|traced_step_time_ms)"')
_MARKED, _FIRST_LINES = 100, 20
_FEW, _FALLING = 2, 0.1
"""Number of rows above which times are checked; they are durations if this share of them decreases."""
_SLOW = 2
"""The first iterations count as start-up if they take this many times as long as usual."""
_LONGEST_TIME = 1e8
_KINDS = ("none", "elapsed", "local", "utc")
"""Kinds of times that rows may have."""
_NOTES = {
    "none": ["The training log contains no times, so its points have only steps."],
    "elapsed": ["The training log counts its times from 0, which is assumed to be the first sample of the run."],
}
_START_UP = (
    "The first iterations in the training log took over twice as long as usual, so their wait for data "
    "is treated as start-up and left out."
)
Row = tuple[int, str, Mapping[str, Any]]
STEP_TIME, DATA_TIME, WAITING = "iteration_time", "data_time", "data_wait_ratio"
STEP_TIMES = {STEP_TIME, "time", "batch_time", "iter_time", "step_time", "elapsed_time_per_iteration_(ms)"}
_DATA_TIMES = {"data", "data_time"}
_TELLING = re.compile(
    r"(?:^|[^a-z])(?:loss|acc|accuracy|perplexity|ppl|f1|auc|bleu|reward|lr|learning_rate|consumed_samples|^throughput"
    r"|(?:sample|image|img|example|seq|sequence|tok|token|step|it|iter|iteration|batch)"
    r"(?:e?s)?(?:_per_|/)s(?:econd|ec)?)(?:$|[^a-z])"
)
_STAMP = re.compile(
    r"\W{0,4}((?:\d{4}[-/])?\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?)", re.ASCII
)
_COUNTER = re.compile(
    r"\b(?:epoch:? *\[?(?P<turn>\d{1,9}) */ *\d{1,9}\]?\W{1,4}(?:step|batch|iter|iteration):? *\[? *(?P<part>\d{1,9})"
    r" */ *(?P<parts>\d{1,9})\]?"
    r"|(?:epoch|train)(?:\(train\))?(?P<colon>:?) {0,3}\[?(?P<epoch>\d{1,9})\]? {0,3}"
    r"\[ *(?P<batch>\d{1,9})/ *(?P<size>\d{1,9})(?: \( *\d{1,3}%\))?\]"
    r"|(?:global_step|num_updates|iteration|iter|steps?)(?:\(train\))?(?: *[:=] *| *\[ *| +)(?P<step>\d{1,15})\b"
    r"(?: */ *\d{1,15})?\]?:?)",
    re.IGNORECASE | re.ASCII,
)
_BAR = re.compile(
    r"(?P<title>[^|%]{0,200}?):? *\d{1,3}%\|[^|]{0,300}\| *(?P<done>\d{1,12}(?:\.\d{1,2})?)(?P<scale>[kMG]?)"
    r"/\d[\d.]{0,11}[kMG]? \[(?P<spent>[\d:]{4,12})<[^,\]]{0,20}(?P<rest>[^\]]{0,1000})\]",
    re.ASCII,
)
_RATE = re.compile(
    r"(?P<rate>\d+(?:\.\d+)?) ?(?P<unit>[a-z]{1,12})/s\b|(?P<each>\d+(?:\.\d+)?)s/(?P<thing>[a-z]{1,12})", re.ASCII
)
_KERAS = re.compile(r"(?P<done>\d{1,9})/(?P<total>\d{1,9}) (?:(?:\[=+\]|\u2501+)(?: -)?|-) \d+s(?P<rest> .*)", re.ASCII)
_PAIR = re.compile(
    r"(?P<name>[A-Za-z_][\w@/.%]{0,60}(?: [A-Za-z(][\w/()]{0,30}){0,4}?)(?: ?= ?|: {1,20}| {1,20}|\t)"
    r"(?P<number>[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?|(?:nan|inf)(?= *(?:[,|)\]]|$)))"
    r"(?P<unit>ms|us|s|%)?(?![\w:/.-])",
    re.ASCII,
)
_NO_NUMBER = re.compile(r"(?<=[ :])-?(?:nan|inf)(?=[,}])")
_DICT = re.compile(r"""(?P<logged>[^{]{1,200} (?=\{['"])|(?=\{'))(?P<dict>\{.*)""", re.ASCII)
_ASIDE = re.compile(
    r"val|eval|test|predict|infer|load|token|map|filter|sanity|generat|extract|fetch|shard", re.IGNORECASE
)
_SCALES = {"ms": 1e-3, "us": 1e-6}
_HEAD, _FEWEST, _LONGEST_LINE = 2_000, 2, 8_192
_ADDED = "The progress bars of the training log were joined end to end, without the time between them."


class Training(NamedTuple):
    """A log's points, and whether they are `dated`, or placed by step. Without times, `work` is the number of steps."""

    table: pa.Table
    outcome: Outcome
    dated: bool
    is_timed: bool
    work: Work | None = None


class TrainingLog:
    kind, title = "training", "training log"

    def identify(self, head: bytes) -> bool:
        """Return whether a file that the user named may be a training log."""
        return (text := head_text(head).lstrip()).startswith("{") or _is_training(text, of_loss=False)

    def is_training_log(self, head: bytes) -> bool:
        """Return whether a file in a folder is a training log: it needs a loss, a rate, or a time and a step."""
        return _is_training(head_text(head).lstrip(), of_loss=True)

    @np.errstate(over="ignore", invalid="ignore")
    def read(self, file: RawFile, options: ReadOptions, started: int, name: str) -> Training:
        """Read a training log. Raises SourceError if the log contains no points.

        Elapsed times count from `started`, in microseconds. In a CSV from TensorBoard, only the file's `name` shows
        the metric.
        """
        account, known, of_epochs, count = Account(), dict[str, int](), False, 0
        rows, points = array("d"), array("d")
        for number, text, cells in _read_rows(file, name, account):
            time, step, waits = _find_time_and_step(tuple(cells))
            if (when := _find_when(cells, time, started)) is None:
                account.reject(f"{MALFORMED} time", number, text)
                continue
            # validation rows from mmengine count the steps of the validation itself
            at = _parse_number(cells[step]) if step and cells.get("mode") != "val" else None
            turn = at if step else _parse_number(cells.get("epoch"))
            of_epochs = of_epochs or (turn is not None and _normalise(step or "epoch") == "epoch")
            for heading, cell in (add_waiting(cells) if waits else cells).items():
                if heading not in {time, step} and (value := _parse_number(cell)) is not None:
                    points.extend((count, known.setdefault(heading, len(known)), value))
            rows.extend((number, *when, *(math.nan if each is None else each for each in (at, turn))))
            count += 1
        lines, kinds, whens, steps, done = np.array(rows).reshape(-1, 5).T
        # the kind that most rows have is used
        most = int(np.bincount(kinds.astype(np.int64), minlength=len(_KINDS)).argmax())
        kept, kind = kinds == most, _KINDS[most]
        account.rows += int(kept.sum())
        account.reject_rows(NO_TIME, lines[~kept].astype(np.int64))
        places, codes, values = np.array(points).reshape(-1, 3).T
        told = kept[places.astype(np.int64)]
        taken, codes = places[told].astype(np.int64), codes[told].astype(np.int64)
        if not len(taken):
            raise SourceError(str(file.path), "it contains no training metrics", WANTED, code="no_training_metrics")
        times = whens[taken].astype(np.int64)
        moves = np.diff(times)
        if kind == "elapsed" and account.rows > _FEW and (moves < 0).sum() >= _FALLING * (moves != 0).sum():
            # they are seconds per iteration
            kind = "none"
        if kind == "local" and options.tz is not None:
            times = clock.to_utc(times, clock.load_zone(options.tz))
        times += started if kind == "elapsed" else 0
        account.note(*_NOTES.get(kind, []))
        work = _count_work(done[kept], account, of_epochs=of_epochs)
        series = Series(times * (kind != "none"), values[told], steps[taken])
        sound = np.ones(len(codes), dtype=np.bool_)
        took = np.flatnonzero(codes == known.get(STEP_TIME, -1))
        if WAITING in known and len(took):
            slow = series.values[took] > _SLOW * np.quantile(series.values[took], 0.5, method="lower")
            begun = took[np.argmin(slow)]
            sound[:begun] = codes[:begun] != known[WAITING]
            account.note(*[] if sound.all() else [_START_UP])
        table = build_training_table(known, codes[sound], series.taken(sound), dated=kind != "none", null=False)
        outcome = Outcome(
            devices=(),
            quality=account.quality(),
            span=(int(series.times.min()), int(series.times.max())),
            timezone="UTC" if kind == "utc" else None,
        )
        is_timed = kind != "none" and bool(np.isfinite(steps[kept]).sum() >= FEWEST_POINTS)
        return Training(table, outcome, kind in {"utc", "local"}, is_timed, work if kind == "none" else None)


def _is_training(text: str, *, of_loss: bool) -> bool:
    if MARK in text[:_MARKED] or _WHOLE.search(text) or is_training_text(text):
        return True
    lines = text.split("\n", _FIRST_LINES)[:_FIRST_LINES]
    return any(_tells_progress(tuple(_split_header(line)[1]), of_loss=of_loss) for line in lines)


def _tells_progress(names: tuple[str, ...], *, of_loss: bool) -> bool:
    found, plain = _find_time_and_step(names)[:2], [*map(_normalise, names)]
    is_timed = all(found) and not any("gpu" in name for name in plain)
    return len(names) > 1 and any(found) and (not of_loss or is_timed or any(map(_TELLING.search, plain)))


def _normalise(name: str) -> str:
    return name.strip().strip("_").lower().replace(" ", "_").replace("-", "_")


@lru_cache(64)
def _find_time_and_step(names: tuple[str, ...]) -> tuple[str | None, str | None, bool]:
    # the names of time and step, and whether there is a `data_time`, beside which `time` is that of an iteration
    known = {_normalise(name): name for name in names}
    waits = DATA_TIME in known
    is_clock = not waits or known.keys() & STEP_TIMES != {"time"}
    times = [each for each in _TIMES if is_clock or each != "time"]
    time, step = (next((known[each] for each in wanted if each in known), None) for wanted in (times, _STEPS))
    return time, step or (known.get("epoch") if time is None else None), waits


def _read_rows(file: RawFile, name: str, account: Account) -> Iterator[Row]:
    if MARK.encode() in file.first_bytes(_MARKED):
        yield from ((number, "", cells) for number, cells in read_events(file, account))
        return
    lines = [line.encode(errors="replace").decode() for line in Text(file)]
    text = "".join(lines)
    first = [line for line in lines if not line.isspace()][:_FIRST_LINES]
    if _WHOLE.search(text) and (whole := _parse_object(text)):
        history = whole.get("log_history", _list_means(whole))
        rows = [each for each in history if isinstance(each, dict)] if isinstance(history, list) else []
        account.continued += max(sum(not line.isspace() for line in lines) - len(rows), 0)
        yield from ((0, "", each) for each in rows)
    elif is_training_text(text[:HEAD_BYTES]):
        yield from read_text(lines, account)
    elif any(line.startswith("{") for line in first):
        for number, line in tools.text_lines(lines, 1, account, may_be_cut=True):
            if (cells := _parse_object(line)) is not None:
                yield number, line, cells
            else:
                account.reject(CUT_LAST_LINE if number == len(lines) else f"{MALFORMED} object", number, line)
    else:
        yield from _read_table(lines, first, name, account)


def _list_means(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    # TraceML's means leave out early steps
    with suppress(KeyError, TypeError, ArithmeticError):
        timed = summary["step_time"]
        means = timed["global"]["average"]
        share = 1 - means["traced_step_time_ms"] / means["step_time_ms"]
        return [{"step": 0}, {**means, "step": timed["metadata"]["training_latest_step"], WAITING: share}]
    return []


def _parse_object(text: str) -> dict[str, Any] | None:
    found = (tools.parse_documents(text) or [None])[0]
    return found if isinstance(found, dict) else None


def _split_header(line: str) -> tuple[str, list[str]]:
    if line.startswith("{"):
        return ",", [*(_parse_object(line) or ())]
    delimiter = tools.find_delimiter(line)
    return delimiter, [name.strip().strip('"').removeprefix("\ufeff") for name in line.strip().split(delimiter)]


def _read_table(lines: Sequence[str], first: Sequence[str], name: str, account: Account) -> Iterator[Row]:
    headers = (_split_header(line) for line in first)
    delimiter, header = next((one for one in headers if _tells_progress(tuple(one[1]), of_loss=False)), (",", []))
    names = header
    if set(map(_normalise, names)) == {"wall_time", "step", "value"}:
        # an export from TensorBoard has its metric in the file name
        match = re.search(r"(?:run-.*-)?tag-(.+)", stem := Path(name).stem, re.IGNORECASE)
        names = [(match[1] if match else stem) if _normalise(each) == "value" else each for each in names]

    def find(cells: Sequence[str]) -> Sequence[str] | None:
        return names if [cell.removeprefix("\ufeff") for cell in cells] == header else None

    for number, _, cells in tools.table_rows(lines, 1, account, find, delimiter):
        yield number, delimiter.join(cells), dict(zip(names, cells, strict=True))


def _count_work(done: columns.FloatArray, account: Account, *, of_epochs: bool) -> Work | None:
    done = done[~np.isnan(done)]
    if not np.isfinite(done).all() or not (np.diff(done) > 0).any():
        return None
    gained, usual = count_gains(done)
    if begun := int(((np.diff(done) < 0) & (gained > 0)).sum()):
        times = "once" if begun == 1 else f"{begun} times"
        account.note(f"The steps of the training log restart {times}, so the last steps of all counts were added up.")
    # epoch 0 is the first epoch; a fractional epoch is the amount done
    is_part = of_epochs and bool((done % 1).any())
    each = min(float(done[0]) or float(of_epochs and not is_part), usual)
    return Work(amount=float(gained.sum()) + max(each, 0.0), unit="epochs" if of_epochs else "steps")


def _find_when(cells: Mapping[str, Any], time: str | None, started: int) -> tuple[int, int] | None:
    """Return the position of the time's kind in `_KINDS`, and the time in microseconds."""
    if time is None:
        return 0, 0
    text = str(cells[time]).strip()
    year = datetime.fromtimestamp(started / 1e6, UTC).year
    years = [f"{each:04}/" for each in (year - 1, year, year + 1)] if re.match(r"\d\d/\d\d[ T]", text) else [""]
    if days := [day for each in years if (day := clock.parse_time(each + text))]:
        found = min(days, key=lambda day: abs(day[0] - started))
        return 2 + found[1], found[0]
    seconds = _parse_number(text) if ":" not in text else _parse_length(text)
    return (1, round(seconds * 1e6)) if seconds is not None and 0 <= seconds < _LONGEST_TIME else None


def _parse_length(text: str) -> float | None:
    parts = text.split(":") if re.fullmatch(r"(?:\d{1,6}:)?\d{1,4}:\d\d(?:\.\d{1,6})?", text, re.ASCII) else []
    return sum(float(part) * 60**place for place, part in enumerate(parts[::-1])) if parts else None


def _parse_number(cell: object) -> float | None:
    with suppress(ValueError):
        return math.nan if math.isinf(value := float(str(cell))) else value
    return None


def is_training_text(text: str) -> bool:
    found = (
        any(name.endswith(("/s", "lr", "rate")) or recognise_metric(name) for name in cells)
        for *_, cells in read_text(text.splitlines(keepends=True)[:_HEAD], Account())
    )
    return sum(found) >= _FEWEST


def read_text(lines: Sequence[str], account: Account) -> Iterator[Row]:
    bars = (bar for line in lines if "%|" in line and (bar := _BAR.match(line.strip())))
    names = Counter(name for bar in bars if not _ASIDE.search(name := _name_bar(bar)))
    # the bar that was drawn most often counts training steps
    loop, keras, where = max(names, key=names.__getitem__, default=""), 0, dict[str, object]()
    done = spent = before = steps = 0
    from_zero = False
    for number, raw in enumerate(lines, 1):
        line = re.sub(r"\x1b\[[0-9;]{0,20}m", "", raw[:_LONGEST_LINE]).strip()
        if not line:
            continue
        cells: dict[str, Any] = {}
        if bar := _BAR.match(line):
            if _name_bar(bar) == loop:
                at = round(float(bar["done"]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[bar["scale"]])
                passed = round(_parse_length(bar["spent"]) or 0)
                if at < done:
                    steps, before = steps + done, before + spent
                    account.note(_ADDED)
                done, spent = at, passed
                where = {"elapsed": before + passed, "step": steps + at}
                cells = where | _read_pairs(bar["rest"])
                rate = _RATE.search(bar["rest"])
                if rate and float(rate["rate"] or rate["each"]) > 0:
                    cells[f"{rate['unit'] or rate['thing']}/s"] = float(rate["rate"] or 1 / float(rate["each"]))
        elif opened := _DICT.match(line):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                # logs may contain `nan` and `inf`, which Python's parser rejects
                text = opened["dict"]
                found = ast.literal_eval(_NO_NUMBER.sub("None", text)) if text[1] == "'" else _parse_object(text)
                stamp = _STAMP.search(opened["logged"])
                own = {"timestamp": stamp[1]} if stamp else where
                cells = own | ({str(name): cell for name, cell in found.items()} if isinstance(found, dict) else {})
        elif (epoch := _KERAS.search(line)) and epoch["done"] == epoch["total"]:
            keras += int(epoch["done"])
            each = re.search(r" (?P<each>\d+(?:\.\d+)?)(?P<unit>ms|us|s)/step", epoch["rest"], re.ASCII)
            lasted = {STEP_TIME: float(each["each"]) * _SCALES.get(each["unit"], 1)} if each else {}
            cells = {"step": keras} | _read_pairs(epoch["rest"]) | lasted
        elif counter := _COUNTER.search(line):
            stamp = _STAMP.match(line)
            start = stamp.end() if stamp and stamp.end() <= counter.start() else 0
            cells = {"timestamp": stamp[1]} if stamp else {}
            said = f"{line[start : counter.start()]} | {line[counter.end() :]}"
            turn = int(counter["turn"] or counter["epoch"] or 1)
            size = int(counter["parts"] or counter["size"] or 0)
            # epochs are counted from 0 in `Epoch: [0]`, or if any epoch is 0
            from_zero = from_zero or bool(counter["colon"]) or not turn
            step = (turn - (not from_zero)) * size + int(counter["step"] or counter["part"] or counter["batch"])
            cells |= {"step": step, **_read_pairs(said)}
        if not cells.keys() - {"timestamp", "elapsed", "step"}:
            account.noise += 1
        # bars and dictionaries end with a bracket
        elif raw.endswith("\n") or line.endswith(("]", "}")):
            yield number, raw, cells
        else:
            account.reject(CUT_LAST_LINE, number, raw)


def _name_bar(bar: "re.Match[str]") -> str:
    return re.sub(r"[\d\W_]+", " ", bar["title"])


def _read_pairs(text: str) -> dict[str, float]:
    cells: dict[str, float] = {}
    for match in _PAIR.finditer(text):
        name, value = match["name"].strip(), float(match["number"])
        key = name.lower().replace(" ", "_")
        scale = _SCALES["ms"] if "(ms)" in key else _SCALES.get(match["unit"] or "", 1)
        if "flop" in key:
            # FLOP per second is not work per second
            name = re.sub("(?i)throughput", "compute", name)
        name = STEP_TIME if key in STEP_TIMES else DATA_TIME if key in _DATA_TIMES else name
        cells.setdefault(name, value * scale)
    batch, seconds = cells.get("global batch size"), cells.get(STEP_TIME)
    return cells | ({"samples/s": batch / seconds} if batch and seconds and seconds > 0 else {})


def add_waiting(cells: Mapping[str, Any]) -> Mapping[str, Any]:
    # `time` is the duration of an iteration unless another name is
    named = [name for name in cells if str(name).lower() in STEP_TIMES]
    times = [name for name in named if str(name).lower() != "time"] or named
    data = next((name for name in cells if str(name).lower() in _DATA_TIMES), "")
    try:
        share = float(cells[data]) / float(cells[times[0]])
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return cells
    rest = {name: cell for name, cell in cells.items() if name not in times}
    return {**rest, STEP_TIME: cells[times[0]], DATA_TIME: cells[data], **({WAITING: share} if 0 <= share <= 1 else {})}
