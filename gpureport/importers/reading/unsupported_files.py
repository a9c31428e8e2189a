"""Files that a person takes for a log of GPUs: what they are instead, and what to do."""

import json
import re

from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect

_RECORD_AGAIN = "fix this on the machine until nvidia-smi by itself shows a table, then record again"
_FIELD = re.compile(r'Field "[^"]*" is not a valid field to query')
_ABSENT = re.compile(r".*nvidia-smi.*(?:command not found|not found|not recognized)", re.IGNORECASE)
_LFS = "version https://git-lfs.github.com/"
_WANDB = (
    "export the recorded values instead of a chart: "
    "wandb.Api().run(...).history(stream='events', samples=100000).to_csv('gpu.csv')"
)
_TRAINING = "give the log of the GPUs as a source, and this one with --training"
_SHOWN = 120
"""Letters of a message that are shown."""
_JSON = "write it as a CSV with a header and one column per metric: --source-kind mapped prints a map for that"


def describe_other_file(text: str) -> tuple[str, str] | None:
    """Return what a text is that is no log of GPUs, and what to do about it; None where that is not known.

    Args:
        text: its beginning.
    """
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0].strip()
    said = f"an error message, not a log ({first[:_SHOWN]})"
    if _FIELD.match(first):
        return said, "leave that field out of the query (nvidia-smi --help-query-gpu lists the fields the driver knows)"
    if QueryGpuDialect().classify(first) == "event" or _ABSENT.match(first):
        return said, _RECORD_AGAIN
    if first.startswith(_LFS):
        return "a Git LFS pointer, not the file itself", "fetch the file with git lfs pull"
    if "system/gpu." in first and "," in first:
        return "a chart exported from the W&B website", _WANDB
    return _of_a_script(first, text)


def _of_a_script(first: str, text: str) -> tuple[str, str] | None:
    """Return what a table or JSON that a script wrote is."""
    from gpureport.importers.logs.training import TrainingLog  # noqa: PLC0415 - most logs are known

    if TrainingLog().is_training_log(text.encode()):
        return "a training log, which says nothing of GPUs", _TRAINING
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):
        return None
    return ("JSON that no known tool writes", _JSON) if isinstance(found, dict) else None
