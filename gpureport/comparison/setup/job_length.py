"""Which params say how long a job is, as `max_steps` and `epochs` do."""

import re

from gpureport.comparison.setup.command_lines import normalize_name

_JOB_STEPS = re.compile(r"(?:(?:max|num|n|total|train|training|max_train|num_train)_)?(?:steps|iterations|iters?)")
_JOB_EPOCHS = re.compile(r"(?:(?:max|num|n|total|train|training|num_train)_)?epochs")
_OF_JOB = (
    {"train", "training", "trainer", "pl", "lightning", "fit", "loop", "run", "job", "experiment", "general", "main"}
    | {"args", "arguments", "params", "parameters", "hparams", "hyperparams", "hyperparameters", "hyper", "hp"}
    | {"config", "configuration", "cfg", "conf", "options", "opts", "settings", "flags", "global"}
)
"""Words of the parts before the last of a name by which it still tells the length of the job: `trainer.max_steps`."""


def is_length_of_job(key: str) -> bool:
    """Return whether a param says how long the job is, which makes it no faster."""
    *parents, last = (normalize_name(part) for part in re.split(r"[./:]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)))
    is_of_job = _OF_JOB.issuperset(word for parent in parents for word in parent.split("_") if word)
    return is_of_job and bool(_JOB_STEPS.fullmatch(last) or _JOB_EPOCHS.fullmatch(last))
