"""Why a line that was read is not in the series: every reason the account of a run can name.

`docs/how-to/read-logs.md` says of each what it means.
"""

WRONG_CELLS = "wrong number of cells"
MALFORMED = "malformed"
"""Followed by the name of the column."""
TORN = "torn line"
NUL_BYTES = "NUL bytes"
CUT_LAST_LINE = "cut last line"
NOT_TEXT = "not UTF-8 text"
BEFORE_HEADER = "before any header"
UNUSABLE_HEADER = "header with"
"""Followed by what it lacks."""
GPU_NOT_NAMED = "GPU not named"
GPU_DAMAGED = "damaged GPU name"
"""Index, uuid, address, serial number or name that a few rows have in place of those of another GPU."""
NOT_SELECTED = "GPU not selected"
"""Rows of GPUs that were not asked for: no fault of the log."""
OUT_OF_SEQUENCE = "stamp out of sequence"
WRONG_TICK = "tick with another number of rows"
DUPLICATE = "duplicate segment"
NO_TIME = "no time stamp"
"""Rows without a time in a log whose other rows have one, or for which `--interval` is not given."""
MIG_INSTANCE = "row of a MIG instance"
"""A part of a GPU; its figures are not those of the whole."""
NO_READING = "no reading of a GPU"
"""A line that was understood, and that says nothing of a GPU which could become a series."""
OUTSIDE = "outside --from and --to"
"""Rows of another part of the run than was asked for: no fault of the log."""
OTHER_JOB = "outside the job of --job"
"""Rows of other jobs, and rows recorded while no job had a GPU: no fault of the log."""
OTHER_ENTITY = "row of no GPU"
"""Rows of MIG instances, switches and links."""
NOT_JSON = "not JSON of this tool"
CUT_DOCUMENT = "cut document"
"""A JSON document that another one begins inside of, or that the log ends inside of."""
TWICE = "recorded in the log before as well"
"""Rows that two rotated logs share are taken once."""
NOT_OF_FORM = "no line of the format"
"""Text between the tables or sections of a log that is no CSV, and what damage left of their lines."""
ENTITIES = "document that declares entities"
"""Such XML is not read at all: nvidia-smi never writes it."""
OTHER_MACHINE = "another machine"
"""Rows of a host log that names several machines; the first one's are kept."""
OTHER_PROCESS = "another process recorded the same device"
"""Points of a tracked run in which every process recorded all GPUs: no fault of the run."""
BESIDE_A_LOG = "recorded in an attached log as well"
"""Points of a tracker for devices that a log attached to the run covers."""
NO_MAIN_ROW = "no row of the main log at that time"
"""Rows of a GPU log joined to another one's, from before or after it or from within its gaps."""
SECOND_HOST = "another log of the run holds the machine"
"""Rows of the machine in a GPU log of a run that has a host log."""
TWICE_AT_ONCE = "another value at the same time"
"""Points of a tracked series that has a later value at the same moment."""
FORKED = "a forked process had the monitor start again"
"""Points of ticks less than a second after another one: every loader worker that Neptune's client is forked into
makes one. No fault of the run.
"""
CHOSEN = frozenset({NOT_SELECTED, OTHER_PROCESS, FORKED, OTHER_JOB})
"""Reasons that are no fault of what was read."""

REASONS = (
    WRONG_CELLS,
    MALFORMED,
    TORN,
    NUL_BYTES,
    CUT_LAST_LINE,
    NOT_TEXT,
    BEFORE_HEADER,
    UNUSABLE_HEADER,
    GPU_NOT_NAMED,
    GPU_DAMAGED,
    NOT_SELECTED,
    OUT_OF_SEQUENCE,
    WRONG_TICK,
    DUPLICATE,
    NO_TIME,
    MIG_INSTANCE,
    NO_READING,
    OUTSIDE,
    OTHER_JOB,
    OTHER_ENTITY,
    NOT_JSON,
    CUT_DOCUMENT,
    TWICE,
    NOT_OF_FORM,
    ENTITIES,
    OTHER_MACHINE,
    BESIDE_A_LOG,
    NO_MAIN_ROW,
    SECOND_HOST,
    TWICE_AT_ONCE,
    OTHER_PROCESS,
    FORKED,
)
