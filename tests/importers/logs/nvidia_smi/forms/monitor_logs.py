"""Logs as the monitors of nvidia-smi write them."""

from collections.abc import Iterable, Sequence

UNITS = {
    **dict.fromkeys(("gtemp", "mtemp", "temp"), "C"),
    **dict.fromkeys(("sm", "mem", "enc", "dec", "jpg", "ofa", "pviol"), "%"),
    **dict.fromkeys(("fb", "bar1", "ccpm"), "MB"),
    **dict.fromkeys(("sbecc", "dbecc", "pci"), "errs"),
    **dict.fromkeys(("rxpci", "txpci"), "MB/s"),
    **dict.fromkeys(("mclk", "pclk"), "MHz"),
    "Date": "YYYYMMDD",
    "Time": "HH:MM:SS",
    "gpu": "Idx",
    "pwr": "W",
    "tviol": "bool",
    "pid": "#",
    "type": "C/G",
    "command": "name",
}
"""What the second line of headings says."""
PUC = ("pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "jpg", "ofa", "mclk", "pclk")
"""Columns of dmon without `-s`."""
PUCVMET = (*PUC, *("pviol", "tviol", "fb", "bar1", "ccpm", "sbecc", "dbecc", "pci", "rxpci", "txpci"))
"""Columns of `dmon -s pucvmet`."""


def clock(second: int) -> list[str]:
    """Return the cells of date and time some seconds after 14 March 2026, 9:00."""
    return ["20260314", f"{9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"]


def heading(names: Sequence[str], *, glued: bool = False) -> list[str]:
    """Return the two lines of headings."""
    return [
        "#" + ("" if glued else " ") + " ".join(f"{cell:>6}" for cell in cells).strip() + " "
        for cells in (names, [UNITS.get(name, "-") for name in names])
    ]


def aligned(cells: Iterable[object]) -> str:
    """Return a row of text."""
    return " ".join(f"{cell:>6}" for cell in cells) + " "


def values(second: int, gpu: int) -> dict[str, int | str]:
    """Return what a GPU shows at a second."""
    return {
        "gpu": gpu,
        "pwr": 300 + second % 7,
        "gtemp": 60 + gpu,
        "mtemp": 70,
        "temp": 60 + gpu,
        "sm": 90 + second % 10,
        "mem": 40,
        "enc": 0,
        "dec": 1,
        "jpg": 2,
        "ofa": 3,
        "mclk": 2619,
        "pclk": 1980,
        "pviol": 12,
        "tviol": 1,
        "fb": 1024,
        "bar1": 3,
        "ccpm": 0,
        "sbecc": 4,
        "dbecc": 5,
        "pci": 6,
        "rxpci": 945,
        "txpci": 17,
    }


def dmon(seconds: int = 20, gpus: int = 1, names: Sequence[str] = PUC, *, stamped: bool = True, every: int = 44) -> str:
    """Return a log of dmon, with its headings before the first row and after each `every` rows."""
    keys = [*(("Date", "Time") if stamped else ()), "gpu", *names]
    lines = []
    rows = [(second, gpu) for second in range(seconds) for gpu in range(gpus)]
    for number, (second, gpu) in enumerate(rows):
        if number % every == 0:
            lines += heading(keys, glued=stamped)
        row = values(second, gpu)
        lines.append(aligned([*(clock(second) if stamped else ()), *(row.get(name, "x") for name in ("gpu", *names))]))
    return "\n".join(lines) + "\n"


def csv(text: str, *, header: bool = True, units: bool = True) -> str:
    """Return a log of dmon as its CSV."""
    lines = []
    for line in text.splitlines():
        cells = line.removeprefix("#").split()
        if line.startswith("#"):
            if header and (units or "Idx" not in cells):
                lines.append("#" + ", ".join(cells))
        else:
            lines.append(", ".join(cells))
    return "\n".join(lines) + "\n"


def process_list(seconds: int, start: int = 0, pids: Sequence[int] = (7, 8)) -> str:
    """Return a log of `pmon -o DT` of one GPU with some processes."""
    names = ("Date", "Time", "gpu", "pid", "type", "sm", "mem", "command")
    rows = [[*clock(start + second), 0, pid, "C", 50, 10, "python"] for second in range(seconds) for pid in pids]
    return "\n".join([*heading(names), *map(aligned, rows)]) + "\n"
