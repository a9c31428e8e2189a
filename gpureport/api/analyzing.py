"""`gpureport.analyze`."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from gpureport import analysis, settings
from gpureport.analysis.account import selection
from gpureport.analysis.account.cost import calculate_cost, read_prices
from gpureport.api.notebook_results import Analysis
from gpureport.errors import SettingsError
from gpureport.recording import Recording
from gpureport.redaction import redact_extra_columns, use_own_secrets
from gpureport.series_table import hold_rows
from gpureport.settings.secret_settings import SECTION, read_own_secrets


def analyze(
    recording: Recording,
    *,
    select: str | Sequence[str] = (),
    ignore: str | Sequence[str] = (),
    settings: str | Path | Mapping[str, Any] | None = None,
) -> Analysis:
    """Return all that can be said about one run: findings, statistics, where the GPU time went, what it cost.

    Args:
        recording: the run, as `read` returns it.
        select: kinds of findings to look for, such as `"idle_gap"`; all when empty.
        ignore: kinds not to look for.
        settings: a `gpureport.toml`, or its content as a dict: `{"rules": {"idle_gap": {...}}, "prices":
            {"gpu_hour": 2.49, "currency": "EUR", "date": "2026-11-01"}}`.
            Without it the defaults hold. Secrets that it names are replaced from then on. No file of the working
            directory is read.

    Raises:
        SettingsError: when a kind or a setting is unknown.

    Warns:
        UserWarning: of each setting that can no longer be set.
    """
    stated_settings = _settings(settings)
    if stated_settings.content.get(SECTION):
        use_own_secrets(read_own_secrets(stated_settings))
        recording = _redact_again(recording)
    rules = selection.apply_settings(analysis.RULES, stated_settings)
    try:
        kinds = selection.select_kinds(rules, _names(select), _names(ignore))
    except SettingsError as error:
        where = error.where.removeprefix("--")
        raise SettingsError(where, error.what, error.hint, code=error.code) from error
    for sentence in selection.list_ignored_settings(analysis.RULES, stated_settings):
        warnings.warn(sentence, stacklevel=2)
    found = selection.keep_kinds(analysis.analyze(recording, rules), kinds)
    found = replace(found, cost=calculate_cost(found, read_prices(stated_settings)))
    values = {field.name: getattr(found, field.name) for field in fields(found)}
    return Analysis(**values, recording=recording, rules=rules, kinds=frozenset(kinds))


def _redact_again(recording: Recording) -> Recording:
    """Return a run without the secrets now in use; rows that lie in a file lose them whenever they are read."""
    rows = recording.rows
    if rows.in_memory:
        rows = hold_rows(redact_extra_columns(rows.table()))
    return Recording(run=replace(recording.run), rows=rows, training=recording.training)


def _names(kinds: str | Sequence[str]) -> tuple[str, ...]:
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


def _settings(given: str | Path | Mapping[str, Any] | None) -> settings.Settings:
    if given is None:
        return settings.Settings()
    return (
        settings.check_sections(settings.Settings(file="settings", content=dict(given)))
        if isinstance(given, Mapping)
        else settings.read_settings(Path(given))
    )
