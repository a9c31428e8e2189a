"""Damages host logs at random and reads them: nothing but the project's own errors may come out."""

import random
from functools import cache
from pathlib import Path

import gpureport.importers.protocol.importer as importers
from gpureport.errors import GpureportError
from gpureport.importers.decoding.pieces import head
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.logs.host import HostLog
from gpureport.importers.protocol.importer import ReadOptions
from tests.fuzz.mutations import LARGEST, MUTATIONS

CAPTURES = Path(__file__).parents[1] / "readers" / "pairs" / "host"
AROUND = (1_795_280_300_000_000, 1_795_280_420_000_000)
FORMS: dict[str, tuple[str, ...]] = {
    "sadf -d": ("captured_sadf_utc.csv", "captured_sadf_epoch.csv", "captured_sadf_local.csv"),
    "sadf -j": ("captured_sadf_json.txt", "captured_sadf_local_json.txt"),
    "sar": ("captured_sar_live.txt", "captured_sar_12h.txt", "captured_sar_de.txt"),
    "mpstat -o JSON": ("captured_mpstat_json.txt",),
    "mpstat": ("captured_mpstat.txt",),
    "vmstat": ("captured_vmstat.txt", "captured_vmstat_utc.txt"),
    "pidstat": ("captured_pidstat.txt", "captured_pidstat_h.txt"),
    "top": ("captured_top.txt", "captured_top_cores.txt"),
    "csv": ("captured_psutil.csv",),
    "uprof": (),
}
TOKENS = (
    *(b"\n", b"\r\n", b" ", b";", b",", b'"', b"{", b"}", b"[", b"]", b"\0", b"\xff", b"-1", b"1e400", b"NaN", b"null"),
    *(b"all", b"%idle", b"CPU", b"PID", b"Command", b"16:59:60", b"25:61:61", b"12:00:00 AM", b"RESTART", b"Average:"),
    *(b"99999999999999999999", b"1795280300", b'{"timestamp": ', b'"cpu-load": 5', b"\n# hostname;interval;timestamp;"),
    *(b"Linux 6.1 (x) \t02/30/26 \t_x86_64_\t(2 CPU)\n", b"top - 99:00:00 up load average: 1,", b"9999-12-31 23:59:59"),
)


def timechart(rows: int = 40) -> bytes:
    """Return a timechart of AMDuProf, made up in its shape."""
    lines = [
        *("AMDPROFILER POWER PROFILE REPORT", "", "PROFILE DETAILS", "Sampling Interval:,100 milli-seconds"),
        *("Profile Start Time:,Nov-21-2026_23-59-58,", "", "PROFILED COUNTERS", "768.,socket0-package-power,Power,W,x"),
        *("", "PROFILE RECORDS", "RecordId,Timestamp,socket0-package-power,socket1-package-power,core0-power"),
    ]
    for row in range(rows):
        second, tenth = divmod(580 + row, 10)
        clock = f"23:59:{second}" if second < 60 else f"0:0:{second - 60}"
        lines.append(f"{row + 1},{clock}:{tenth}59,   {90 + row}.50,  100.25,    0.12, ")
    return "\n".join([*lines, ""]).encode()


@cache
def seeds(form: str) -> list[bytes]:
    """Return the logs of a form that are damaged: captures, shortened."""
    texts = [timechart()] if form == "uprof" else [(CAPTURES / name).read_bytes() for name in FORMS[form]]
    return [text[:5000].rpartition(b"\n")[0] + b"\n" for text in texts] + texts[:1]


def _token(data: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(data) + 1)
    return data[:place] + chance.choice(TOKENS) * chance.choice([1, 1, 1, 2, 500]) + data[place:]


def _cell(data: bytes, chance: random.Random) -> bytes:
    """Put something else in place of a word."""
    words = data.split(b" ")
    words[chance.randrange(len(words))] = chance.choice(TOKENS)
    return b" ".join(words)


def mutated(form: str, number: int) -> bytes:
    """Return the case of a number: a log damaged one to six times."""
    chance = random.Random(f"{form} {number}")
    data = chance.choice(seeds(form))
    for _ in range(chance.randint(1, 6)):
        data = chance.choice((*MUTATIONS, _token, _token, _cell))(data or b"\n", chance)
    return data[:LARGEST]


def ending(path: Path, number: int) -> str:
    """Read a host log and return how that ended: `read`, `not a host log`, or the error's class.

    Raises:
        AssertionError: when lines are not accounted for; and whatever the project does not raise itself.
    """
    options = ReadOptions(tz=random.Random(number).choice([None, None, "Europe/Berlin"]), around=AROUND)
    log = HostLog()
    try:
        if not log.identify(head(RawFile(path), importers.HEAD_BYTES)):
            return "not a host log"
        extraction = log.extract(RawFile(path), options)
        rows = sum(len(batch) for batch in extraction.batches())
        quality = extraction.outcome().quality
    except GpureportError as error:
        return type(error).__name__
    assert quality.accounted, quality
    assert rows == quality.rows_kept
    return "read"
