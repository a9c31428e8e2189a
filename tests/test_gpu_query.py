"""The command that logs GPUs holds what any rule asks of a log of nvidia-smi."""

from gpureport.analysis.detectors import RULES
from gpureport.gpu_query import COUNTER_FIELDS, GPU_FIELDS, IDENTITY_FIELDS, query_command
from gpureport.metrics import BY_NAME


def test_the_command_holds_what_the_rules_use() -> None:
    """A rule with a new metric adds its field to the command."""
    metrics = {name for rule in RULES for group in (*rule.requires, rule.wants) for name in group}
    fields = {BY_NAME[name].recorded_by for name in metrics if BY_NAME[name].queried}
    assert {part for field in fields for part in field.split(",")} <= {*GPU_FIELDS, *COUNTER_FIELDS}


def test_every_command_says_which_gpu_a_row_is_of() -> None:
    """A short query keeps time, index, name, uuid and memory installed."""
    assert query_command(["utilization.gpu"]).split("--query-gpu=")[1].split()[0].split(",") == [
        *IDENTITY_FIELDS,
        "utilization.gpu",
    ]
