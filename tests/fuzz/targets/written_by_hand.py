"""What a person writes by hand: settings, policies, maps, steps, tables of labels, limits and options."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

import gpureport
from gpureport.analysis import RULES
from gpureport.analysis.cost.prices import read_prices
from gpureport.analysis.engine.selection import apply_settings
from gpureport.checks.policy import parse_option_limit
from gpureport.checks.policy_settings import read_baseline_name, read_policy
from gpureport.cli.options import option_values
from gpureport.cli.options.param_type import ParamType
from gpureport.cli.runs.step_file import read_step_file
from gpureport.comparison.training.training_goals import read_goals
from gpureport.importers.labelling.label_file import read_label_files
from gpureport.importers.labelling.label_table import LabelTable
from gpureport.importers.protocol.column_map import read_column_map
from gpureport.importers.reading.time_window import Window
from gpureport.importers.trackers.neptune_hardware.name_map import read_name_map
from gpureport.settings import read_settings
from gpureport.testing import Run
from tests.fuzz.targets.target import SAMPLES, Target
from tests.importers.written_logs import log

_SETTINGS = """
[prices]
currency = "EUR"
date = 2026-03-14
gpu_hour = 2.5
[[prices.rate]]
model = "A100"
gpu_hour = 3
spot = true
[carbon]
intensity = 360
[rules.idle_gap]
few = 20
[baseline]
name = "main"
[training]
target = "val_accuracy=0.78"
better = { my_metric = "higher" }
"""
_POLICY = """
[[policy]]
limit = "idle_ratio <= 5 %"
for = { gpu = [0, 2], step = "night-*", source = "node1*" }
unless = "tag user = ann"
confidence = "high"
[[policy]]
limit = "change gpu_utilization_ratio >= -5 points"
[[acknowledge]]
finding = "idle_gap"
reason = "known"
until = 2026-12-31
"""
_STEPS = """
[[step]]
label = "a"
runs = ["input", "night.csv"]
params = { batch_size = 64, lr = 1e-3, amp = true }
work = ["12000:steps", "9000:steps"]
[[step]]
label = "b"
runs = ["c"]
"""
_NAMES = """
[neptune]
namespaces = ["hw/training"]
[neptune.series."hw/gpu0"]
metric = "gpu_utilization_ratio"
unit = "%"
device = "gpu:0"
"""
_SACCT = """JobID|JobIDRaw|JobName|User|Account|Partition|NodeList|Start|End|State
4411|4411|train|ada|ml|gpu|gpu[01-04,07]|2026-03-14T09:26:53|2026-03-14T10:26:53|COMPLETED
4411.batch|4411.batch|batch||ml||gpu01|2026-03-14T09:26:53|2026-03-14T10:26:53|CANCELLED by 1000
4412_7|4413|"x|bob|ml|gpu|login,n[1-2]m[08-09]|Unknown|None|PENDING
"""
_LABELS = {"name": "base", "step": "0", "params": {"batch_size": 64, "amp": True}, "tags": {"user": "ada"}}
_LIMITS = (
    "problem; idle_ratio <= 5 %; gpu_utilization_ratio p50 >= 80 %; no thermal_throttle; duration >= 10 min; "
    "new problem; change gpu_seconds_per_1000_work <= 5%; cost <= 3 EUR; energy_joules <= 2 kWh; "
    "gpu_memory_used_bytes max <= 40 GiB"
)
_OPTIONS: tuple[ParamType[Any], ...] = (
    *(option_values.Pair(), option_values.Amount(), option_values.Direction(), option_values.Target()),
    *(option_values.Indices(), option_values.JobNumber(), option_values.Fields(), option_values.LabelNames()),
    *(option_values.Seconds(), option_values.Detail(), option_values.Price(), option_values.MoneyPrice()),
    option_values.GpuModel(),
)
_VALUES = ("a=b", "12000:steps", "x=higher", "val_accuracy=0.78", "0,2", "each", "timestamp,index", "0.5", "2.49 EUR")


def _read_settings(path: Path) -> None:
    settings = read_settings(path)
    for read in (read_prices, read_policy, read_baseline_name, read_goals):
        read(settings)
    apply_settings(RULES, settings)


def _read_text(path: Path) -> str:
    # what a shell hands over
    return path.read_bytes().decode(errors="surrogateescape")


@cache
def _make_run() -> Run:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "gpu.csv"
        path.write_text(log(20))
        (recording,) = gpureport.read(path, tz="Europe/Berlin")
        return recording.run


def _read_options(path: Path) -> None:
    text = _read_text(path)
    for option in _OPTIONS:
        with suppress(click.UsageError):
            option.convert(text, None, None)


TARGETS = (
    Target(name="settings", make_seeds=lambda: [_SETTINGS.encode(), _POLICY.encode()], read=_read_settings),
    Target(name="policy", make_seeds=lambda: [_POLICY.encode()], read=lambda path: read_policy(read_settings(path))),
    Target(
        name="limit of an option",
        make_seeds=lambda: [text.encode() for text in _LIMITS.split("; ")],
        read=lambda path: parse_option_limit(_read_text(path)),
    ),
    Target(
        name="map of a table",
        make_seeds=lambda: [(SAMPLES / "mapped" / "map.toml").read_bytes()],
        read=read_column_map,
    ),
    Target(name="map of Neptune", make_seeds=lambda: [_NAMES.encode()], read=read_name_map),
    Target(name="steps", make_seeds=lambda: [_STEPS.encode()], read=read_step_file),
    Target(
        name="table of labels",
        make_seeds=lambda: [_SACCT.encode(), b"run,user,gpu hours\na.csv,ada,5\n"],
        read=LabelTable,
    ),
    Target(
        name="file of labels",
        make_seeds=lambda: [json.dumps(_LABELS).encode()],
        read=lambda path: read_label_files(path.parent / "gpu.csv", [path]),
        file="gpu.csv.json",
    ),
    Target(
        name="part of a run",
        make_seeds=lambda: [b"1h30m", b"0:10:00", b"90", b"2026-03-14T09:26", b"2026-03-14 09:26:00.5+01:00"],
        read=lambda path: Window(start=_read_text(path)).bounds(_make_run()),
    ),
    Target(name="options", make_seeds=lambda: [text.encode() for text in _VALUES], read=_read_options),
)
