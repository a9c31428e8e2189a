"""Reads `nvidia-smi dmon`, process lists, and logs of several forms, block by block."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import itemgetter

import numpy as np

from gpureport.importers import account as reasons
from gpureport.importers.account import Account, whole_lines
from gpureport.importers.clock import count_days, parse_time, parse_time_of_day
from gpureport.importers.columns import TIME, Column, Layout, Record, Rows, Texts, form, make_column, make_layout
from gpureport.importers.extraction import Form
from gpureport.importers.nvidia_smi import declare, documents, opens_query
from gpureport.importers.nvidia_smi.query import NAME, QueryLines, as_pieces, read_query
from gpureport.parsing import parse_quantity

_CLOCK = "time of day"
_CLOCK_NOTE = "The log has times of day without a date (-o T), so days are counted from 1970-01-01. Use -o DT."
_INSTANCE = frozenset({"mig", "mig_id", "gi", "gi_id", "ci", "ci_id"})
_SERIES = {
    "pwr": ("gpu_power_watts", "W"),
    "gtemp": ("gpu_temperature_celsius", "C"),
    "mtemp": ("gpu_memory_temperature_celsius", "C"),
    "sm": ("gpu_utilization_ratio", "%"),
    "mem": ("gpu_memory_controller_ratio", "%"),
    "enc": ("gpu_encoder_ratio", "%"),
    "dec": ("gpu_decoder_ratio", "%"),
    "jpg": ("gpu_jpeg_ratio", "%"),
    "ofa": ("gpu_ofa_ratio", "%"),
    "mclk": ("gpu_memory_clock_hertz", "MHz"),
    "pclk": ("gpu_sm_clock_hertz", "MHz"),
    "pviol": ("gpu_power_violation_ratio", "%"),
    "tviol": ("gpu_thermal_violation", ""),
    "fb": ("gpu_memory_used_bytes", "MB"),
    "bar1": ("gpu_bar1_used_bytes", "MB"),
    "ccpm": ("gpu_protected_memory_used_bytes", "MB"),
    "sbecc": ("gpu_ecc_single_bit_total", ""),
    "dbecc": ("gpu_ecc_double_bit_total", ""),
    "pci": ("pcie_replays_total", ""),
    "rxpci": ("pcie_receive_bytes_per_second", "MB/s"),
    "txpci": ("pcie_transmit_bytes_per_second", "MB/s"),
    "gract": ("gpu_graphics_engine_active_ratio", "%"),
    "smutil": ("gpu_sm_active_ratio", "%"),
    "smocc": ("gpu_sm_occupancy_ratio", "%"),
    "mmaact": ("gpu_tensor_active_ratio", "%"),
    "dram": ("gpu_dram_active_ratio", "%"),
    "pcitx": ("pcie_transmit_bytes_per_second", "MiB/s"),
    "pcirx": ("pcie_receive_bytes_per_second", "MiB/s"),
    "nvltx": ("nvlink_transmit_bytes_per_second", "MiB/s"),
    "nvlrx": ("nvlink_receive_bytes_per_second", "MiB/s"),
    "temp": ("gpu_temperature_celsius", "C"),
}
"""Metric and unit of each heading, in dmon's order; dmon's MB are MiB. Headings from `gract` on come from
`--gpm-metrics` (Hopper and newer; driver 580.159.04 on an H100). `temp` is the only temperature in old drivers.
"""
_USUAL = {count + 3: ["Date", "Time", "gpu", *[*_SERIES][:count]] for count in (11, 21)}
"""Columns of `dmon -o DT` by column count: the default columns, and all columns of `-s` (R550 and newer)."""
_UNITS = "#YYYYMMDD, HH:MM:SS, Idx, W, C, C(?:, %){6}, MHz, MHz(?:, %, bool(?:, MB){3}(?:, errs){3}(?:, MB/s){2})?"
_HEADERLESS = re.compile(rf"(?:{_UNITS}| ?\d{{8}}, \d\d:\d\d:\d\d(?:, *(?:\d+|-))+)\s*", re.ASCII)
_OTHER_UNITS = re.compile("#YYYYMMDD, HH:MM:SS, Idx, [^#]")
"""Matches the units of columns that cannot be inferred without headings; pmon's units contain a `#`."""
_DATED = re.compile(rb"^(\d{4})(\d\d)(\d\d) (\d\d:\d\d:\d\d)", re.MULTILINE)


def _words(line: str) -> list[str]:
    return re.split(r"[\s,]+", re.sub(r"\[[^\]]*\]", "", line).strip("# ,\t\r\n"))


@lru_cache(256)
def _names(line: str) -> list[str]:
    words = _words(line) if line.lstrip()[:1] in {"#", "d", "D", "t", "T", "g"} else []
    names = [word.lower() for word in words]
    rest = [name for name in names if name not in {"date", "time", "gpu", *_INSTANCE}]
    known = sum(name in _SERIES for name in rest)
    if "gpu" not in names[:3] or "pid" in rest or not known or ("#" not in line and not 1 < known == len(rest)):
        return []
    return words


def _assume(line: str) -> list[str]:
    """Return the columns of a log without headings, based on their number."""
    return _USUAL.get(line.count(",") + 1, []) if _HEADERLESS.fullmatch(line) else []


@lru_cache(256)
def _layout(*headings: str) -> Layout:
    columns = []
    for heading in headings:
        target, unit = _SERIES.get(heading.lower(), ("index" if heading == "gpu" else "", ""))
        if heading.lower() == "time":
            columns.append(Column(target=_CLOCK, source=heading, read=parse_time_of_day))
        elif target == "gpu_thermal_violation":
            columns.append(Column(target=target, source=heading, read={"0": False, "1": True}.get))
        else:
            columns.append(make_column(target, heading, unit))
    if [heading.lower() for heading in headings[:2]] == ["date", "time"]:
        # `_cells_apart` joins date and time
        columns[:2] = [make_column(TIME, headings[0])]
    return make_layout(columns, delimiter=" ")


def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    def find(line: str) -> Layout | None:
        # units and people's comments also begin with `#`
        return _layout(*names) if (names := _names(line)) else log.layout if line[:1] == "#" else None

    clock, remaining = list[int](), iter(lines)
    begin = next(remaining, "")
    if assumed := _assume(begin):
        account.note(f"dmon wrote no header, so its columns are assumed: {' '.join(assumed[2:])}.")
    log = QueryLines(find, account, _layout(*assumed) if assumed else None)
    for piece in as_pieces(chain([begin], remaining), first):
        for layout, rows in log.read(piece._replace(data=_cells_apart(piece.data))):
            yield from _whole_gpus(layout, rows, account, clock)


def _cells_apart(lines: bytes) -> bytes:
    """Separate cells by single spaces, and join date and time into one cell."""
    text = np.frombuffer(lines.translate(bytes.maketrans(b",\t\r", b"   ")), dtype=np.uint8)
    blank = text == ord(" ")
    # the last of several spaces is kept, unless it ends the line
    blank[:-1] &= blank[1:] | (text[1:] == ord("\n"))
    kept: bytes = text[~blank].tobytes()
    return _DATED.sub(rb"\1/\2/\3T\4", kept.replace(b"\n ", b"\n").removeprefix(b" "))


def _whole_gpus(layout: Layout, rows: Rows, account: Account, clock: list[int]) -> Iterator[Rows]:
    for column in layout.columns:
        texts = rows.data.get(column.target)
        part = column.source.lower() in _INSTANCE
        if isinstance(texts, Texts) and (part or column.target in {"index", _CLOCK}):
            wrong = (texts.codes >= 0) == part
            account.reject_rows(
                reasons.MIG_INSTANCE if part else f"{reasons.MALFORMED} {column.source}", rows.lines[wrong]
            )
            rows = rows.select(~wrong)
            if part:
                del rows.data[column.target]
                rows.reasons.pop(column.source, None)
    rows.data.pop("extra_Date", None)
    clocks = rows.data.pop(_CLOCK, None)
    if isinstance(clocks, Texts) and len(rows):
        account.note(_CLOCK_NOTE)
        rows.times = count_days(np.array(clocks.texts, dtype=np.int64)[clocks.codes], clock)
        clock[:] = rows.times[-1:].tolist()
    yield rows


_PMON_NOTE = (
    "The log lists processes (pmon). The number and memory of each GPU's processes are kept. If a GPU has only one "
    "process, the process's sm is used as the GPU's utilisation. To record the real one, use nvidia-smi dmon -o DT."
)
_APPS_NOTE = (
    "The log lists processes. The number and memory of each GPU's processes are kept; the GPU itself uses more memory. "
    "A GPU without processes has no row."
)
PMON = re.compile(r"\s*#?\s*(?:date[\s,]+)?(?:time[\s,]+)?gpu[\s,]+pid[\s,]+type\b", re.IGNORECASE)
_IDENTITY = {"gpu": "index", "gpu_uuid": "uuid", "gpu_bus_id": "bus_id", "gpu_serial": "serial", "gpu_name": "model"}
_ENDED = {"max_memory_usage", "time", "gpu_util", "gpu_utilization", "mem_util", "mem_utilization"}
"""Fields about finished processes, which do not describe a GPU at one time."""
_FIELDS = {TIME, *_IDENTITY, *_ENDED, "used_gpu_memory", "used_memory", "gpu_instance_id", "compute_instance_id"} | {
    *("process_name", "name", "pid")
}


def opens_apps(line: str) -> bool:
    names = _words(line) if "," in line and "pid" in line else []
    return "pid" in names and set(names) <= _FIELDS and len(set(names)) == len(names)


@form
def _read_lists(
    lines: Iterable[str], first: int, account: Account, *, opens: Callable[[str], object]
) -> Iterator[Record]:
    # the maximum microseconds from the first to the last row of a query
    slack, note = (60_000, _APPS_NOTE) if opens is opens_apps else (0, _PMON_NOTE)
    gpus, began = dict[tuple[str, ...], Record](), 0
    names, comma = list[str](), None
    for number, line in whole_lines(lines, first, account):
        if opens(line) or line.lstrip()[:1] == "#":
            names = _words(line.lower()) if opens(line) else names
            comma = "," if "," in line else None
            account.headers += 1
            continue
        # a process name, the last cell in pmon, may contain spaces and commas
        cells = line.split(comma, max(len(names) - 1, 0) if opens is not opens_apps else -1)
        if not line or len(cells) != len(names):
            missing = reasons.WRONG_CELLS if names else reasons.BEFORE_HEADER
            account.sort_out(number, line, missing) if line else None
            continue
        row = {name: cell.strip() for name, cell in zip(names, cells, strict=True)}
        ended = _ENDED & row.keys() and "date" not in row
        time = None if ended else parse_time(row.get(TIME) or f"{row.get('date')} {row.get('time')}")
        gpu = {_IDENTITY[name]: text for name, text in row.items() if name in _IDENTITY and text[:1] != "["}
        if ended:
            account.reject(reasons.NO_READING, number, line)
        elif not gpu or not re.fullmatch("[0-9]{1,4}", gpu.get("index", "0")):
            account.reject(reasons.GPU_NOT_NAMED, number, line)
        elif time is None or not re.fullmatch("[0-9]{1,10}|-", row["pid"]):
            account.reject(f"{reasons.MALFORMED} {'pid' if time else 'time'}", number, line)
        else:
            account.note(note)
            key = tuple(gpu.values())
            if gpus and (abs(time[0] - began) > slack or (key in gpus and row["pid"] in gpus[key]["rows"])):
                yield from map(_record, gpus.values())
                gpus = {}
            began = began if gpus else time[0]
            account.continued += key in gpus
            gpus.setdefault(key, {"line": number, TIME: (time[0], False), **gpu, "rows": {}})["rows"][row["pid"]] = row
    yield from map(_record, gpus.values())


read_pmon = partial(_read_lists, opens=PMON.match)
read_compute_apps = partial(_read_lists, opens=opens_apps)


def _record(own: Record) -> Record:
    rows = own.pop("rows")
    running = [row for pid, row in rows.items() if pid != "-"]
    shown = next((name for name in ("fb", "used_gpu_memory", "used_memory") if name in next(iter(rows.values()))), "")
    sizes = [parse_quantity(row.get(shown, ""), "MiB", "By") for row in running]
    memory = None if not shown or None in sizes else round(sum(size for size in sizes if size))
    own |= {"gpu_processes": len(running), "gpu_process_memory_bytes": memory}
    if any("sm" in row for row in rows.values()):
        own["gpu_utilization_ratio"] = parse_quantity(running[0]["sm"], "%", "1") if len(running) == 1 else None
    return own


_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""Matches a shell prompt with a command, or a separator line; either ends the block above."""
_LONGEST = 16_384
_ABOVE, _HANDED_ON = 6, 2_000
_Block = tuple[int, Form | None, str]
FORMS: tuple[tuple[Callable[[str], object], Form, str, tuple[str, ...]], ...] = (
    (documents.TABLE.match, documents.read_drawn_tables, "plain nvidia-smi", ("|", "+")),
    (documents.XML.match, documents.read_query_xml, "nvidia-smi -q -x", (" ", "\t", "<")),
    (documents.TEXT.match, documents.read_query_text, "nvidia-smi -q", (" ",)),
    (lambda line: _names(line) or _assume(line) or _OTHER_UNITS.match(line), read_dmon, "nvidia-smi dmon", ()),
    (PMON.match, read_pmon, "nvidia-smi pmon", ()),
    (opens_apps, read_compute_apps, "nvidia-smi --query-compute-apps", ()),
    (opens_query, read_query, NAME, ()),
)
"""For each form: a test for a block's first line, a reader, a name, and prefixes of lines that continue the block."""
_KNOWN: dict[Form | None, tuple[str, tuple[str, ...]]] = {None: ("text", ())} | {
    reads: (name, inside) for _, reads, name, inside in FORMS
}


def begins_other_form(text: str) -> bool:
    forms = {form for (_, form, _), *_ in _cut(text.split("\n"), 1)} - {read_query, None}
    return bool(forms) and (forms != {documents.read_query_xml} or "nvidia_smi_log" in text)


@lru_cache(4096)
def _opener(line: str) -> Form | None:
    return next((form for opens, form, *_ in FORMS if opens(line)), None) if len(line) < _LONGEST else None


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    for (_, reads, header), parts in groupby(_cut(lines, first), key=itemgetter(0)):
        begin = next(parts)
        read = partial(read_query, layout=declare(header)) if header else reads or _unread
        name, _ = _KNOWN[reads]
        account.forms.setdefault(name, 0)
        for rows in read(chain.from_iterable(part for *_, part in chain([begin], parts)), begin[1], account):
            account.forms[name] += len(rows)
            yield rows


def _cut(lines: Iterable[str], first: int) -> Iterator[tuple[_Block, int, list[str]]]:
    block: _Block = (0, None, "")
    part, header, interrupted = list[str](), "", False
    inside: tuple[str, ...] = ()
    for number, line in enumerate(lines, first):
        known = line.startswith(inside) if inside else block[1] is not None and line.lstrip(" ")[:1].isdigit()
        if not known and (text := line.rstrip("\r\n")):
            form = _opener(text)
            command = form is None and _COMMAND.fullmatch(text) is not None
            back = form is None and interrupted and "|" not in text and not command and not text.isspace()
            if form is not block[1] and (form is not None or command or back):
                # the text above a table may contain its time
                table = form is documents.read_drawn_tables
                own = min(len(part), _ABOVE) if table and block[1] is None else 0
                yield block, number - len(part), part[: len(part) - own]
                part = part[len(part) - own :]
                interrupted = table and block[1] is read_query
                block = block[0] + 1, read_query if back else form, header if back else ""
                _, inside = _KNOWN[block[1]]
            header = text if form is read_query else header
        part.append(line)
        if len(part) > _HANDED_ON:
            yield block, number + 1 - len(part), part[:-_ABOVE]
            part = part[-_ABOVE:]
    yield block, number + 1 - len(part) if part else first, part


def _unread(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    for number, line in enumerate(lines, first):
        if text := line[:1000].strip("\0 \r\n\t\v\f"):
            # a comment may contain commands with numbers and bars
            account.stray(number, text if text[0] != "#" else "#")
    yield from ()
