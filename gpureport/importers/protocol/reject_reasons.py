"""Why lines are not in the series, and the codes of notes, which a stored run keeps as text."""

import re

WRONG_CELLS = "wrong number of cells"
MALFORMED = "malformed"
"""Followed by the name of the column."""
TORN = "torn line"
NUL_BYTES = "NUL bytes"
CUT_LAST_LINE = "cut last line"
NOT_TEXT = "not UTF-8 text"
BEFORE_HEADER = "before any header"
GPU_NOT_NAMED = "GPU not named"
GPU_DAMAGED = "damaged GPU name"
"""Index, uuid, address, serial number or name that a few rows have in place of those of another GPU."""
NOT_SELECTED = "GPU not selected"
OUT_OF_SEQUENCE = "stamp out of sequence"
WRONG_TICK = "tick with another number of rows"
DUPLICATE = "duplicate segment"
NO_TIME = "no time stamp"
"""Rows without a time in a log whose other rows have one, or for which `--interval` is not given."""
MIG_INSTANCE = "row of a MIG instance"
"""A part of a GPU; its figures are not those of the whole."""
NO_READING = "no reading of a GPU"
OUTSIDE = "outside --from and --to"
OTHER_JOB = "outside the job of --job"
OTHER_ENTITY = "row of no GPU"
NOT_JSON = "not JSON of this tool"
CUT_DOCUMENT = "cut document"
"""A JSON document that another one begins inside of, or that the log ends inside of."""
TWICE = "recorded in the log before as well"
NOT_OF_FORM = "no line of the format"
"""Text between the tables or sections of a log that is no CSV, and what damage left of their lines."""
OTHER_MACHINE = "another machine"
"""Rows of a host log that names several machines; the first one's are kept."""
OTHER_PROCESS = "another process recorded the same device"
"""Points of a tracked run in which every process recorded all GPUs: no fault of the run."""
BESIDE_A_LOG = "recorded in an attached log as well"
"""Points of a tracker for devices that a log attached to the run covers."""
NO_MAIN_ROW = "no row of the main log at that time"
SECOND_HOST = "another log of the run holds the machine"
TWICE_AT_ONCE = "another value at the same time"
FORKED = "a forked process had the monitor start again"
"""Points of ticks within a second of another one, as each worker that Neptune's client is forked into makes."""
CHOSEN = frozenset({NOT_SELECTED, OTHER_PROCESS, FORKED, OTHER_JOB})
"""Reasons that are no fault of what was read."""

NOTE_CODES: dict[str, str] = {
    # how the bytes were read
    "damaged_archive": "the compressed log is ",
    "nul_bytes_skipped": " skipped.",
    "latin_1_lines": "in latin-1, not utf-8",
    "lines_shortened": "shortened, as no log has lines so long",
    "last_line_cut": "no newline at its end, so its last line may be cut",
    "torn_lines": "in a whole row: the row is kept",
    # which columns
    "columns_not_used": "--columns was not used",
    "headings_translated": "headings that nvidia-smi does not write",
    "fractions_or_per_cent": "could be fractions or per cent",
    "share_or_per_cent": "is a share or per cent",
    "day_before_month": "are read as day/month/year",
    "month_before_day": ", the month first",
    "columns_assumed": "columns are taken for ",
    "columns_not_kept": "not kept",
    "several_values_at_once": "has several values for one gpu and time",
    "what_is_kept": "what is measured is kept",
    "instant_power": "the log holds no average power",
    "power_in_whole_watts": "no clock event reasons, and power in whole watts",
    "processes_listed": "lists processes: how many a gpu has",
    "means_of_job": "statistics of a job are means over all of it",
    "summary_of_one_gpu": "a summary does not say of how many gpus",
    "means_since_start": "the means are those since the collection began",
    # which GPUs
    "mixed_gpus": "neither a column nor their order tells them apart",
    "gpus_by_place": "each is a place in the tick",
    "one_gpu_assumed": "one gpu is assumed",
    "gpus_by_order": "no row by both: they are taken to be the same in the order",
    "several_models": "one gpu under the names of several drivers",
    "minor_numbers": "gpus are numbered by their minor numbers",
    "mig_instances": "mig instances",
    "gpu_model_given": "the gpu model ",
    "gpu_model_not_used": " is not used for it",
    "tags_not_set": "so the run has no tag",
    # when
    "interval_not_used": "--interval was not used",
    "single_moment": "a single sample, whose time is counted",
    "rows_without_time": "rows have no time stamp and were left out",
    "time_of_day": "times of day and no date",
    "dates_placed": "it writes no date: its times were placed",
    "zone_above_tables": "name a zone: they are taken as written",
    "zones_of_sources": "zones of the time stamps:",
    "different_zones": "made in different zones",
    "unknown_zone": "which is not known here; give --tz",
    "ambiguous_hour": "has twice in autumn",
    "rows_repeated": "again what earlier ones say",
    "recordings_out_of_order": "recordings out of the order of time",
    "rows_sorted": "too often for a clock",
    "several_writers": "writers wrote to the log at once",
    "steps_begin_anew": "of the training log begin anew",
    "start_up_not_waited": "what they waited for data is start-up",
    "steps_only": "its points are known by their steps only",
    "times_from_zero": "counts its times from 0",
    # several sources of one run
    "rows_joined": "rows joined by time",
    "several_machines": "taken for logs of several machines",
    "log_not_used": "lies beside the log, but is not used",
    "log_attached": "is attached to the run and is read for",
    "attachment_not_used": "is attached to the run and not",
    "labels_not_read": "is not read as labels",
    # the recording
    "run_file_damaged": "is damaged: params, zone and exit code are not known",
    "unfinished": "the recorder was ended before the job",
    "exit_code": "the job ended with exit code",
    "job_not_started": "the job was not started",
    "log_missing": " is missing: ",
    "driver_restarted": "and was started again",
    "empty_log": "holds no row: nvidia-smi gave none",
    # trackers
    "mlflow_store": "of mlflow",
    "deleted_run": "the run was deleted in mlflow",
    "no_end": "the run has no end in mlflow",
    "no_system_metrics": "no system metrics in this run",
    "derived_values": "derived from a value and its share",
    "reserved_memory_counted": "holds what the driver reserves",
    "zeros_put_back": "are put back",
    "never_reported": "was never reported",
    "stamped_late": "mlflow stamps a system metric when it logs it",
    "processes_told_by_steps": "their samples were told apart by their steps",
    "monitoring_ended": "hardware monitoring ended",
    "artifacts_not_read": "artifacts of the run could not be looked through",
    "zeros_missing": "so zeros cannot be put back",
    "memory_of_largest": "is taken to be that of the largest one",
    "first_sample_off": "the first sample lies",
    "operations_uploaded": "what was before it was uploaded and deleted",
    "operations_lost": " lost when the process was killed",
    "newer_database": "newer than is known",
    "bars_added": "bars of the training log were taken one after",
    "work_counted": "work done, by ",
    "no_work_metric": "counts work in this run",
    "one_mean": "holds one mean of the whole run",
}
"""Code of a note to words that it holds, in lower case; the first that fits."""


def find_note_code(note: str) -> str:
    text = note.lower()
    return next((code for code, words in NOTE_CODES.items() if words in text), "")


def find_reject_code(reason: str) -> str:
    """Return a reject reason in snake_case, without the column it names."""
    known = MALFORMED if reason.startswith(f"{MALFORMED} ") else reason
    return re.sub(r"[^a-z0-9]+", "_", known.lower()).strip("_")
