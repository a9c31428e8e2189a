"""Comparisons that select stored runs: what matches, and what is said of one that makes no sense."""

from dataclasses import replace

import pytest

from gpureport.errors import SettingsError
from gpureport.store.indexed_run import IndexedRun
from gpureport.store.run_selection import RunSelection, parse_condition, parse_since, select_runs
from tests.patience import patience

HOUR = 3_600_000_000
START = 1_792_821_600_000_000  # 2026-10-24 06:00 UTC
RUN = IndexedRun(
    id="0123456789abcdef",
    name="resnet base",
    step="base",
    started=START,
    ended=START + 90 * HOUR // 60,
    timezone="Europe/Berlin",
    synthetic_time=False,
    interval=1.0,
    gpus=8,
    models=("NVIDIA A100-SXM4-80GB", "NVIDIA L4"),
    hosts=("node_1",),
    uuids=("GPU-1", "GPU-2"),
    params=(("batch", "64"), ("optimizer", "adam")),
    tags=(("user", "ann"), ("note", "a=b"), ("empty", "")),
    source_kinds=("nvidia_smi", "host"),
    source_sizes=(1, 2),
    columns=(),
    importer_version="1",
    series_sha256=None,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name=resnet base", True),
        ("name=resnet", False),
        ("name~RESNET*", True),
        ("name!=resnet", True),
        ("id~0123*", True),
        ("step=base", True),
        ("step!=base", False),
        ("model=NVIDIA L4", True),
        ("model!=NVIDIA L4", False),
        ("model~*h100*", False),
        ("host=node_1", True),
        ("uuid=GPU-2", True),
        ("source=host", True),
        ("gpus=8", True),
        ("gpus==8", True),
        ("gpus != 8", False),
        (" gpus >= 8 ", True),
        ("gpus<8", False),
        ("duration>1h", True),
        ("duration>=1h30m", True),
        ("duration>1h30min", False),
        ("duration<0.5d", True),
        ("started=2026-10", True),
        ("started=2026-10-24T08", True),
        ("started=2026-10-24T06Z", True),
        ("started>2026-10-24", False),
        ("started>=2026-10-24 08:00", True),
        ("started~2026-*-24*", True),
        ("ended<2026-10-24T09:30", False),
        ("ended<=2026-10-24T09:30", True),
        ("ended!=2025", True),
        ("tag:user=ann", True),
        ("tag:user~a*", True),
        ("tag:note=a=b", True),
        ("tag:empty=", True),
        ("tag:user>3", False),
        ("param:batch=64.0", True),
        ("param:batch>=64", True),
        ("param:batch<64", False),
        ("param:optimizer!=sgd", True),
        ("param:missing!=sgd", False),
    ],
)
def test_a_comparison_holds_or_not(text: str, *, expected: bool) -> None:
    """Texts, numbers, durations and dates in the zone of the run are compared; what is missing never matches."""
    assert parse_condition(text).matches(RUN) is expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpus", "--where: 'gpus' is no comparison; write KEY=VALUE with one of name, id, step, "),
        ("=8", "is no comparison"),
        # a pattern that tries every way to part the spaces never ends
        pytest.param(" " * 50_000, "is no comparison", id="spaces"),
        ("gpu=8", "--where: no key 'gpu'; did you mean 'gpus'?"),
        ("user=ann", "no key 'user'; write tag:user=ann for a tag; other keys are name, "),
        ("name>x", "name is text; compare it by =, != or ~"),
        ("gpus~8", "gpus is a number; "),
        ("gpus=many", "'many' is no number; write it as gpus=8"),
        ("param:lr<fast", "'fast' is no number"),
        ("duration>3", "'3' is no duration; write it as 90s, 30m, 2h or 1h30m"),
        ("started>today", "'today' is no date; write it as 2026-10, 2026-10-14 or "),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, message: str) -> None:
    """One line says what is wrong and what to write instead."""
    with pytest.raises(SettingsError) as raised, patience(15):
        parse_condition(text)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2h", "Europe/Berlin", True),
        ("30m", "Europe/Berlin", False),
        ("30m", None, False),
        ("1w", None, True),
        ("2026-10-24", None, True),
        ("2026-10-24T09:30", "Europe/Berlin", True),
        ("2026-10-24 09:31", "Europe/Berlin", False),
        ("2026-10-24T08:00", None, False),
    ],
)
def test_since_counts_from_the_end(text: str, zone: str | None, *, expected: bool) -> None:
    """A run that ended an hour ago is one of the last two hours; a date is in the zone of the run."""
    now = RUN.ended + HOUR
    assert parse_since(text, now).matches(replace(RUN, timezone=zone)) is expected


@pytest.mark.parametrize("text", ["99999999d", f"{'9' * 400}h"])
def test_since_may_reach_back_before_any_run(text: str) -> None:
    """Further back than there are dates is since ever."""
    assert parse_since(text, RUN.ended).matches(RUN)


def test_since_needs_a_time() -> None:
    """Anything else is refused, and a run without time stamps never matches."""
    with pytest.raises(SettingsError, match="--since: 'yesterday' is no time; write it as 30d, 12h, "):
        parse_since("yesterday", 0)
    assert not parse_since("1w", RUN.ended).matches(replace(RUN, synthetic_time=True))


def test_all_conditions_must_hold() -> None:
    """Runs keep their order; a tag that no run has is a mistake and not an empty answer."""
    runs = [replace(RUN, name=str(number), gpus=number) for number in range(6)]
    wanted = RunSelection(conditions=tuple(map(parse_condition, ("gpus>1", "gpus<4", "tag:user=ann"))))
    assert [run.name for run in select_runs(runs, wanted)] == ["2", "3"]
    assert select_runs(runs, RunSelection()) == runs
    with pytest.raises(SettingsError, match="no stored run has the tag 'usr'; did you mean tag:user"):
        select_runs(runs, RunSelection(conditions=(parse_condition("tag:usr=ann"),)))
    assert select_runs([], RunSelection(conditions=(parse_condition("tag:usr=ann"),))) == []
