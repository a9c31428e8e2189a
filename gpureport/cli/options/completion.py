"""What the shell offers for a word that is being typed: kinds, runs, baselines and files, without loading Arrow."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gpureport.store.stored_names import find_store_folder, list_baseline_names, list_stored_names

if TYPE_CHECKING:
    from gpureport.places import Place

KINDS = (
    "clocks_locked",
    "cpu_bound",
    "cpu_bound_single",
    "ecc_error",
    "full_precision",
    "gpu_lost",
    "hollow_util",
    "host_memory_pressure",
    "hw_throttle",
    "idle_gap",
    "imbalance",
    "io_bound",
    "log_gap",
    "low_util_cause_unknown",
    "mem_headroom",
    "mem_leak",
    "mem_prealloc",
    "mem_pressure",
    "monitoring_ended",
    "no_progress",
    "oversized_gpu",
    "pcie_degraded",
    "periodic_stall",
    "power_cap",
    "power_limited",
    "startup_idle",
    "tail_idle",
    "thermal_throttle",
    "transfer_bound",
    "underutilised",
    "unused_gpu",
    "workers_headroom",
    "zombie_memory",
)
"""Every check. The rules know them too, but loading the rules takes longer than a person waits for a Tab."""
_SEVERITIES = ("problem", "warning", "info")


def complete_kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the checks."""
    del ctx, param
    return _offer(KINDS, incomplete)


def complete_limits(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what a rule on findings can be: a severity or a check."""
    del ctx, param
    return _offer((*_SEVERITIES, *KINDS), incomplete)


def complete_explained(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer what `explain` knows: checks, metrics and `recording`."""
    from gpureport.metrics import METRICS  # noqa: PLC0415 - only here

    del ctx, param
    return _offer(("recording", *KINDS, *(metric.name for metric in METRICS)), incomplete)


def complete_gpu_models(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the GPU models that are one word; others need quotes."""
    from gpureport.gpus import load_gpus  # noqa: PLC0415 - only here

    del ctx, param
    return _offer((gpu.model for gpu in load_gpus() if " " not in gpu.model), incomplete)


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the stored runs, the newest first."""
    del param
    return _offer(_list_runs(ctx), incomplete)


def complete_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the stored runs and files."""
    del param
    return [*_offer(_list_runs(ctx), incomplete), CompletionItem(incomplete, type="file")]


def complete_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer files alone."""
    del ctx, param
    return [CompletionItem(incomplete, type="file")]


def complete_baselines(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of baselines."""
    del param
    store = _find_store(ctx)
    return _offer(list_baseline_names(store) if store else (), incomplete)


def complete_baseline_sources(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names of baselines, the stored runs and files."""
    return [*complete_baselines(ctx, param, incomplete), *complete_sources(ctx, param, incomplete)]


def _list_runs(ctx: click.Context) -> Sequence[str]:
    store = _find_store(ctx)
    return [each.word for each in reversed(list_stored_names(store))] if store else []


def _find_store(ctx: click.Context) -> Path | None:
    """Return the store that the words typed so far name, else the nearest one; None for one that takes long to list."""
    chosen: Place | None = ctx.params.get("store") or (ctx.parent.params.get("store") if ctx.parent else None)
    if chosen is None:
        return find_store_folder(Path.cwd())
    return chosen if isinstance(chosen, Path) else None


def _offer(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]
