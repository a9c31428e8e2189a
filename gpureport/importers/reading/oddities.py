"""What leaves the plain road of a query log: the sign by which it is met, the stage that takes it, and an example.

A clean `nvidia-smi --query-gpu` log runs through none of these stages. A new oddity is a module and an entry here.
"""

from dataclasses import dataclass

PLAIN_HEADER = "timestamp, index, uuid, name, utilization.gpu [%], memory.total [MiB], power.draw [W]"
_STAMP = "2026/03/14 09:26:53.589"
_CELLS = "0, GPU-5a3e17c0-0000-4000-8000-000000000000, NVIDIA H100, 93 %, 81559 MiB, 612.40 W"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """Something that a plain log does not hold.

    Attributes:
        sign: what shows it.
        stage: module below `gpureport.importers` that takes it.
        effect: what the stage does.
        example: a line that shows it.
        header: header of a log of which every row is like the example, empty where it has none; None where the
            example is one line among plain rows.
        option: option with which the log is read.
    """

    sign: str
    stage: str
    effect: str
    example: str
    header: str | None = None
    option: str = ""


ODDITIES = (
    Oddity(
        sign="a byte that is not ASCII",
        stage="decoding.encoding",
        effect="reads UTF-16, UTF-32 and Latin-1 as UTF-8, also where the encoding changes within the file",
        example=f"{_STAMP}, 0, GPU-5a3e17c0-0000-4000-8000-000000000000, NVIDIA H100™, 93 %, 81559 MiB, 612.40 W",
    ),
    Oddity(
        sign="NUL bytes or carriage returns",
        stage="decoding.cleaning",
        effect="skips runs of NUL bytes and counts them; ends lines at carriage returns",
        example=f"\0\0\0\0{_STAMP}, {_CELLS}",
    ),
    Oddity(
        sign="a quotation mark",
        stage="decoding.quoting",
        effect="removes the quotes around cells and joins rows that a quoted cell breaks",
        example=", ".join(f'"{cell}"' for cell in f"{_STAMP}, {_CELLS}".split(", ")).replace(", ", ","),
    ),
    Oddity(
        sign="a line near the beginning that is neither a header nor a row",
        stage="logs.nvidia_smi.forms.blocks",
        effect="looks for other output of nvidia-smi, such as tables, -q or dmon, and reads the log as that",
        example="Sat Mar 14 09:26:53 2026",
    ),
    Oddity(
        sign="a beginning that is not one header with units above stamped rows",
        stage="logs.nvidia_smi.query.opening",
        effect="finds out which columns the rows have",
        example=PLAIN_HEADER,
    ),
    Oddity(
        sign="rows without a header",
        stage="logs.nvidia_smi.query.headerless",
        effect="asks for --columns and prints the option to copy, with the names that the cells prove",
        example=f"{_STAMP}, {_CELLS}",
        header="",
    ),
    Oddity(
        sign="a heading that a person wrote",
        stage="logs.nvidia_smi.query.headings",
        effect="takes it for the field of nvidia-smi that it can only mean, and says so",
        example=f"{_STAMP}, 0, 93, 612.40",
        header="timestamp, index, gpu_util%, power_W",
    ),
    Oddity(
        sign="a share under a heading without a unit",
        stage="logs.nvidia_smi.query.fractions",
        effect="keeps a column as text that may hold fractions or per cent",
        example=f"{_STAMP}, 0, 0.93, 612.40 W",
        header="timestamp, index, utilization.gpu, power.draw [W]",
    ),
    Oddity(
        sign="semicolons between cells",
        stage="logs.nvidia_smi.query.spreadsheet",
        effect="reads decimal commas and dots between thousands as a spreadsheet writes them",
        example="2026/03/14 09:26:53;0;93;612,40",
        header="timestamp;index;utilization.gpu [%];power.draw [W]",
    ),
    Oddity(
        sign="semicolons between cells and a date that begins with its day",
        stage="values.day_first",
        effect="reads the date as day, month, year",
        example="14.03.2026 09:26:53;0;93;612,40",
        header="timestamp;index;utilization.gpu [%];power.draw [W]",
    ),
    Oddity(
        sign="time stamps that name their offset, or seconds since 1970",
        stage="values.absolute_stamps",
        effect="reads them as UTC",
        example="2026-03-14T09:26:53Z, 0, 93 %, 612.40 W",
        header="timestamp, index, utilization.gpu [%], power.draw [W]",
    ),
    Oddity(
        sign="no time stamps",
        stage="logs.nvidia_smi.query.timeless",
        effect="leaves out words and numbers that a job printed between the rows",
        example="0, 93 %, 612.40 W",
        header="index, utilization.gpu [%], power.draw [W]",
        option="--interval",
    ),
    Oddity(
        sign="no time stamps, and --interval",
        stage="timebase.tick_times",
        effect="counts the times of the rows of each GPU from the interval",
        example="0, 93 %, 612.40 W",
        header="index, utilization.gpu [%], power.draw [W]",
        option="--interval",
    ),
    Oddity(
        sign="a line with another number of cells, or a cell that its column cannot hold",
        stage="delimited.line_by_line",
        effect="looks at the lines of the piece one by one and rejects those that are no rows, with the reason",
        example="2026/03/14 09:26:53.589, 0, GPU-5a3e17c0-0000",
    ),
    Oddity(
        sign="a torn line",
        stage="delimited.row_fragments",
        effect="keeps a whole row at its end and rejects what stands before it",
        example=f"{_STAMP}, 0, GPU-5a3e{_STAMP}, {_CELLS}",
    ),
    Oddity(
        sign="a message of the driver",
        stage="logs.nvidia_smi.query.driver_messages",
        effect="keeps it as an event at the time of the row before it",
        example="Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.",
    ),
    Oddity(
        sign="a column that names the machine",
        stage="logs.nvidia_smi.query.host_column",
        effect="refuses a log of several machines whose GPUs nothing tells apart",
        example=f"{_STAMP}, 0, 93 %, 612.40 W, node-7",
        header="timestamp, index, utilization.gpu [%], power.draw [W], hostname",
    ),
    Oddity(
        sign="no column that names the GPU",
        stage="logs.nvidia_smi.query.unnamed_gpus.tick_assignment",
        effect="tells GPUs apart by the place of their rows among those of one tick",
        example=f"{_STAMP}, 93 %, 612.40 W",
        header="timestamp, utilization.gpu [%], power.draw [W]",
    ),
    Oddity(
        sign="an index as the only name of a GPU",
        stage="devices.shared_indices",
        effect="takes boards of different models or memory at one index for different GPUs",
        example=f"{_STAMP}, 0, 93 %, 612.40 W",
        header="timestamp, index, utilization.gpu [%], power.draw [W]",
    ),
    Oddity(
        sign="few rows that name a GPU in this way, a name that the driver does not write, or several sizes of memory",
        stage="logs.nvidia_smi.query.torn_lines",
        effect="rejects rows that were torn within a name",
        example=f"{_STAMP}, {_CELLS}".replace("NVIDIA H100", "NVIDIA HNVIDIA H100"),
    ),
    Oddity(
        sign="few rows that name a GPU in this way",
        stage="recorders.damaged_identities",
        effect="rejects rows that stand in the place of a row of another GPU",
        example=f"{_STAMP}, {_CELLS}".replace(", 0, ", ", 4, "),
    ),
    Oddity(
        sign="neighbouring time stamps more than a day apart",
        stage="ordering.timestamp_outliers",
        effect="rejects rows whose date is damaged",
        example=f"{_STAMP}, {_CELLS}".replace("2026", "2036"),
    ),
    Oddity(
        sign="a time stamp below the one before it",
        stage="ordering.backward_survey",
        effect="reads the log once more to find out why, and places every row by that",
        example=f"{_STAMP}, {_CELLS}".replace("09:26:53", "09:25:53"),
    ),
    Oddity(
        sign="the same below a clock that ran back by half hours",
        stage="timebase.dst_set_back",
        effect="moves rows on that were written after the end of daylight saving",
        example=f"{_STAMP}, {_CELLS}".replace("09:26:53", "08:26:53"),
    ),
    Oddity(
        sign="the same with rows that stand in the log already",
        stage="ordering.repeated_stretches",
        effect="leaves out rows that repeat earlier ones",
        example=f"{_STAMP}, {_CELLS}".replace("09:26:53", "09:26:10"),
    ),
    Oddity(
        sign="the same again and again",
        stage="recorders.interleaved_writers",
        effect="parts the rows of several recorders that wrote to one file",
        example=f"{_STAMP}, {_CELLS}".replace("09:26:53", "09:26:20"),
    ),
    Oddity(
        sign="--tz",
        stage="timebase.zones",
        effect="turns local times into UTC; refuses a zone whose clocks never showed them",
        example=f"{_STAMP}, {_CELLS}",
        header=PLAIN_HEADER,
        option="--tz",
    ),
    Oddity(
        sign="--tz, and an hour that the zone has twice",
        stage="timebase.ambiguous_hour",
        effect="counts the rows of which nothing tells in which of the two hours they were written",
        example=f"{_STAMP}, {_CELLS}".replace("2026/03/14 09", "2026/10/25 02"),
        header=PLAIN_HEADER,
        option="--tz",
    ),
)
"""The oddities in the order in which a log meets their stages."""
