"""What training loops print: bars of tqdm and Keras, Hugging Face's dictionaries, and lines of names and numbers.

A line counts if it states its step: `Epoch: [0][ 10/5005]` (ImageNet), `Epoch(train) [1][50/5000]`
(mmengine), `iteration 10/ 1000 |` (Megatron), `iter 10:` (nanoGPT), `step=100`, `10/1000 [00:05<08:15, 2.00it/s]`.
Numbers follow names, as `loss: 2.9`, `loss=2.9` or `loss 2.9`. A time is a date before the line, or a bar's
elapsed time. Seconds per iteration are no clock: they are `iteration_time`, whatever the loop calls them, and the
share of data loading in it is `data_wait_ratio`.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from gpureport.importers.account import Account
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE

Row = tuple[int, str, Mapping[str, object] | str]
"""Line, what it says, and the cells by name, or why it is none."""
STEP_TIME, DATA_TIME, WAITING = "iteration_time", "data_time", "data_wait_ratio"
STEP_TIMES = {STEP_TIME, "time", "batch_time", "iter_time", "step_time", "elapsed_time_per_iteration_(ms)"}
_DATA_TIMES = {"data", "data_time"}
LOSS = re.compile(r"(?:^|[^a-z])(?:loss|acc|accuracy|perplexity|ppl|f1|auc|bleu|reward|lr|learning_rate)(?:$|[^a-z])")
"""What only a training loop writes."""
_STAMP = re.compile(
    r"\W{0,4}((?:\d{4}[-/])?\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?)", re.ASCII
)
_COUNTER = re.compile(
    r"\b(?:epoch:? *\[?(?P<turn>\d{1,9}) */ *\d{1,9}\]?\W{1,4}(?:step|batch|iter|iteration):? *\[? *(?P<part>\d{1,9})"
    r" */ *(?P<parts>\d{1,9})\]?"
    r"|(?:epoch|train)(?:\(train\))?(?P<colon>:?) {0,3}\[?(?P<epoch>\d{1,9})\]? {0,3}"
    r"\[ *(?P<batch>\d{1,9})/ *(?P<size>\d{1,9})(?: \( *\d{1,3}%\))?\]"
    r"|(?:global_step|iteration|iter|step)(?:\(train\))?(?: *[:=] *| *\[ *| +)(?P<step>\d{1,15})\b"
    r"(?: */ *\d{1,15})?\]?:?)",
    re.IGNORECASE | re.ASCII,
)
_BAR = re.compile(
    r"(?P<title>[^|%]{0,200}?):? *\d{1,3}%\|[^|]{0,300}\| *(?P<done>\d{1,12})/(?P<total>\d{1,12})"
    r" \[(?P<spent>[\d:]{4,12})<[^,\]]{0,20}(?P<rest>[^\]]{0,1000})\]",
    re.ASCII,
)
_RATE = re.compile(
    r"(?P<rate>\d+(?:\.\d+)?) ?(?P<unit>[a-z]{1,12})/s\b|(?P<each>\d+(?:\.\d+)?)s/(?P<thing>[a-z]{1,12})", re.ASCII
)
_KERAS = re.compile(r"(?P<done>\d{1,9})/(?P<total>\d{1,9}) (?:(?:\[=+\]|\u2501+)(?: -)?|-) \d+s(?P<rest> .*)", re.ASCII)
_EACH = re.compile(r" (?P<each>\d+(?:\.\d+)?)(?P<unit>ms|us|s)/step", re.ASCII)
_PAIR = re.compile(
    r"(?P<name>[A-Za-z_][\w@/.%]{0,60}(?: [A-Za-z(][\w/()]{0,30}){0,4}?)(?: ?= ?|: {1,20}| {1,20}|\t)"
    r"(?P<number>[+-]?(?:\d{1,20}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?|(?:nan|inf)(?= *(?:[,|)\]]|$)))"
    r"(?P<unit>ms|us|s|%)?(?![\w:/.-])",
    re.ASCII,
)
_NO_NUMBER = re.compile(r"(?<=[ :])-?(?:nan|inf)(?=[,}])")
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_ASIDE = re.compile(
    r"val|eval|test|predict|infer|load|token|map|filter|sanity|generat|extract|fetch|shard", re.IGNORECASE
)
"""Bars of something else than training."""
_SCALES = {"ms": 1e-3, "us": 1e-6}
_HEAD, _FEWEST, _LONGEST = 2_000, 2, 8_192
"""Lines that are looked at to recognise a text, steps that must be among them, and characters of a line that count."""
_ADDED = "The bars of the training log were taken one after the other: time between two of them is not in them."


def is_training_text(text: str) -> bool:
    """Return whether a text's first lines are a training loop's: steps with a loss, rate or time."""
    rows = (cells for _, _, cells in read_text(text.splitlines(keepends=True)[:_HEAD], Account()))
    of_loop = (
        any(name == STEP_TIME or name.endswith("/s") or LOSS.search(name.lower()) for name in cells)
        for cells in rows
        if not isinstance(cells, str)
    )
    return sum(of_loop) >= _FEWEST


def read_text(lines: Sequence[str], account: Account) -> Iterator[Row]:
    """Yield the lines of a training loop; the others are noise."""
    bars = (bar for line in lines if "%|" in line and (bar := _BAR.match(line.strip())))
    names = Counter(name for bar in bars if not _ASIDE.search(name := _name_bar(bar)))
    # the bars that count training steps are those drawn most
    loop, keras, where = max(names, key=names.__getitem__, default=""), 0, dict[str, object]()
    done = spent = before = steps = 0
    from_zero = False
    for number, raw in enumerate(lines, 1):
        line = _COLOUR.sub("", raw[:_LONGEST]).strip()
        if not line:
            continue
        cells: dict[str, Any] = {}
        if bar := _BAR.match(line):
            if _name_bar(bar) == loop:
                at = int(bar["done"])
                passed = sum(int(part or 0) * 60**place for place, part in enumerate(bar["spent"].split(":")[::-1]))
                if at < done:
                    steps, before = steps + done, before + spent
                    account.note(_ADDED)
                done, spent = at, passed
                where = {"elapsed": before + passed, "step": steps + at}
                cells = where | _read_pairs(bar["rest"])
                rate = _RATE.search(bar["rest"])
                if rate and float(rate["rate"] or rate["each"]) > 0:
                    cells[f"{rate['unit'] or rate['thing']}/s"] = float(rate["rate"] or 1 / float(rate["each"]))
        elif line.startswith("{'"):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                # Python prints a number that is none so, but does not read it
                found = ast.literal_eval(_NO_NUMBER.sub("None", line))
                cells = where | ({str(name): cell for name, cell in found.items()} if isinstance(found, dict) else {})
        elif (epoch := _KERAS.search(line)) and epoch["done"] == epoch["total"]:
            keras += int(epoch["done"])
            cells = {"step": keras} | _read_pairs(epoch["rest"])
            if each := _EACH.search(epoch["rest"]):
                cells[STEP_TIME] = float(each["each"]) * _SCALES.get(each["unit"], 1)
        elif counter := _COUNTER.search(line):
            stamp = _STAMP.match(line)
            start = stamp.end() if stamp and stamp.end() <= counter.start() else 0
            cells = {"timestamp": stamp[1]} if stamp else {}
            said = f"{line[start : counter.start()]} | {line[counter.end() :]}"
            turn, size = int(counter["turn"] or counter["epoch"] or 1), int(counter["parts"] or counter["size"] or 0)
            # epochs count from 0 behind a colon, as `Epoch: [0]`, or where one is 0, else from 1
            from_zero = from_zero or bool(counter["colon"]) or not turn
            step = (turn - (not from_zero)) * size + int(counter["step"] or counter["part"] or counter["batch"])
            cells |= {"step": step, **_read_pairs(said)}
        if len(cells.keys() - {"timestamp", "elapsed", "step"}):
            # a bar and a dictionary have an end of their own
            whole = raw.endswith("\n") or line.endswith(("]", "}"))
            yield number, raw, cells if whole else CUT_LAST_LINE
        else:
            account.noise += 1


def _name_bar(bar: "re.Match[str]") -> str:
    return re.sub(r"[\d\W_]+", " ", bar["title"])


def _read_pairs(text: str) -> dict[str, float]:
    cells: dict[str, float] = {}
    for match in _PAIR.finditer(text):
        name, value = match["name"].strip(), float(match["number"])
        key = name.lower().replace(" ", "_")
        scale = _SCALES["ms"] if "(ms)" in key else _SCALES.get(match["unit"] or "", 1)
        if "flop" in key:
            # arithmetic a second is no work done a second
            name = re.sub("(?i)throughput", "compute", name)
        name = STEP_TIME if key in STEP_TIMES else DATA_TIME if key in _DATA_TIMES else name
        cells.setdefault(name, value * scale)
    batch, seconds = cells.get("global batch size"), cells.get(STEP_TIME)
    return cells | ({"samples/s": batch / seconds} if batch and seconds and seconds > 0 else {})


def add_waiting(cells: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return cells with the share of an iteration spent waiting for data, where they give both times.

    The time beside data loading is seconds per iteration, unless another one is called so.
    """
    named = [name for name in cells if str(name).lower() in STEP_TIMES]
    times = [name for name in named if str(name).lower() != "time"] or named
    data = next((name for name in cells if str(name).lower() in _DATA_TIMES), "")
    try:
        share = float(cells[data]) / float(cells[times[0]])
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError):
        return cells
    rest = {name: cell for name, cell in cells.items() if name not in times}
    return {**rest, STEP_TIME: cells[times[0]], DATA_TIME: cells[data], **({WAITING: share} if 0 <= share <= 1 else {})}
