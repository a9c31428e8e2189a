"""What nights are compared with: named baselines and trial decisions.

A baseline is a small store in the folder `baselines/`, which may be kept in git or a bucket. It does not change when
the runs that it copied are relabelled or removed.
"""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from hashlib import sha256
from pathlib import PurePath
from typing import Any, NamedTuple

from gpureport.errors import DamagedRunError, SettingsError, StoreError
from gpureport.parsing import parse_json
from gpureport.places import Place, fetch
from gpureport.recorder.job_params import find_settings
from gpureport.recording import Recording, Run
from gpureport.store import atomic_writes
from gpureport.store.run_records import list_run_folders
from gpureport.store.run_selection import BASELINES
from gpureport.store.store import Entry, Store
from gpureport.trial.plan import fill_command, label_setting, split_command

_MARKER = "store.json"
"""The file that marks a folder as a store, and a baseline as complete."""
_DECISIONS = "decisions"
_Known = tuple[int, list[str], set[tuple[str, str]], str]
"""When a setting was tried, its script and options, and what was found if another setting is faster."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Baseline(NamedTuple):
    """A named baseline and its runs; a damaged baseline has none."""

    name: str
    runs: tuple[Run, ...]


def open_baseline(store: Store, name: str) -> Store:
    folder = _baseline_folder(store, name)
    if not (folder / _MARKER).is_file():
        close = get_close_matches(name, [each.name for each in list_baselines(store)], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"create it with gpureport baseline set {name} SOURCE"
        raise StoreError(name, "no such baseline", hint, code="no_such_baseline")
    return Store(folder)


def set_baseline(store: Store, name: str, entries: Sequence[Entry]) -> Baseline:
    place = _baseline_folder(store, name)
    if (damaged := next((entry for entry in entries if not store.intact(entry)), None)) is not None:
        raise StoreError(damaged.run.name, "damaged or missing", "ingest the run again", code="damaged_run")
    with atomic_writes.raise_store_errors(store.folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_writes.remove_stale_files(place.parent)
    with (
        atomic_writes.write_folder(place.parent, lambda: name, _MARKER) as part,
        atomic_writes.raise_store_errors(store.folder),
    ):
        (part / _MARKER).write_bytes((store.folder / _MARKER).read_bytes())
        for entry in entries:
            copy = part / "runs" / entry.run.id
            shutil.copytree(fetch(entry.folder), copy)
            for file in copy.iterdir():
                atomic_writes.flush_to_disk(file)
    return Baseline(name=name, runs=tuple(entry.run for entry in entries))


def list_baselines(store: Store) -> tuple[Baseline, ...]:
    return tuple(
        Baseline(name=folder.name, runs=tuple(stored.run for stored in Store(folder).index().runs))
        for folder in sorted(path.parent for path in (store.folder / BASELINES).glob(f"[!.]*/{_MARKER}"))
    )


def remove_baseline(store: Store, name: str) -> None:
    folder = open_baseline(store, name).folder
    with atomic_writes.raise_store_errors(store.folder):
        atomic_writes.remove_folder(folder, _MARKER)


def read_baseline(store: Store, name: str) -> list[Recording]:
    small = open_baseline(store, name)
    runs = small.folder / "runs"
    try:
        found = [small.get(run_id) for run_id in list_run_folders(runs)]
    except DamagedRunError:
        found = []
    entries = sorted(filter(None, found), key=lambda entry: (entry.run.started, entry.run.id))
    if not entries and not runs.is_dir():
        hint = "if git ignored the baseline, run this where it was set: git add --force .gpureport/baselines"
        raise StoreError(f"baseline {name}", f"damaged: {runs} is missing", hint, code="damaged_baseline")
    if not entries:
        hint = f"restore it, or run gpureport baseline set {name} SOURCE"
        raise StoreError(f"baseline {name}", "damaged", hint, code="damaged_baseline")
    return [small.read(entry) for entry in entries]


def _baseline_folder(store: Store, name: str) -> Place:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, '.', '_' and '-', and start with a letter or digit"
        raise SettingsError(name, "not a valid baseline name", hint, code="not_a_baseline_name")
    return store.folder / BASELINES / name


def keep_decision(store: Place, decision: dict[str, Any], trial: str, *, named: bool) -> None:
    """Write a decision, unless empty, to a store that exists or was named, replacing any earlier one."""
    digest = sha256(json.dumps(decision.get("plan", {}) | {"budget_seconds": None}).encode()).hexdigest()[:16]
    text = json.dumps({**decision, "trial": trial}, indent=1, ensure_ascii=False)
    with atomic_writes.raise_store_errors(store):
        if named or store.is_dir():
            (folder := store / _DECISIONS).mkdir(parents=True, exist_ok=True)
            if decision:
                atomic_writes.write_bytes(folder / f"{digest}.json", f"{text}\n".encode(), folder)


def find_slower(store: Place, runs: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """Yield a sentence for each slower setting and its runs, and for each damaged decision."""
    known: list[_Known] = []
    for path in (store / _DECISIONS).glob("[!.]*.json"):
        try:
            known += _read_decision(parse_json(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError):
            yield f"{_DECISIONS}/{path.name} cannot be read; remove it, or repeat its trial (damaged_decision)."
    # the newest comparison of a setting counts
    known.sort(key=lambda each: each[0], reverse=True)
    names: dict[str, list[str]] = {}
    for name, tags in runs if known else ():
        script, given = _split(split_command(tags))
        found = (text for _, of, options, text in known if of == script and options <= given.items())
        names.setdefault(next(found, ""), []).append(name)
    for text, own in names.items():
        more = f" and {len(own) - 1:,} more" if len(own) > 1 else ""
        yield from [f"{own[0]}{more}: {text} (slower_setting)."] if text else []


def _read_decision(content: Any) -> Iterator[_Known]:
    command, best, speeds = content["plan"]["command"], tuple((content["best"] or {}).items()), {}
    for each in content["settings"]:
        # changes are relative to the base
        change = 0.0 if each["setting"] == content["base"] else each["change"]
        if not (change is None or each["failure"] or each["quality_fell"]):
            speeds[tuple(each["setting"].items())] = (1 + change) ** content["better"]
    for own, speed in speeds.items():
        gain, text = speeds.get(best, 0.0) / speed - 1, ""
        if gain > 0 and dict(own) not in content["tied"]:
            mine, other = (label_setting([pair for pair in a if pair not in b]) for a, b in ((own, best), (best, own)))
            text = f"runs with {mine}; trial {content['trial']} found {other} {gain:.0%} faster"
        words = fill_command(command, own)
        options = {(name, value) for at, name, value in find_settings(words) if words[at] != command[at]}
        yield content["runs"][-1]["started"], _split(words)[0], options, text


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command without its options, starting at its Python file if any, and the options."""
    options = [*find_settings(words)]
    values = {at for at, *_ in options}
    left = [word for at, word in enumerate(words) if at not in values and not word.startswith("-")]
    first = next((at for at, word in enumerate(left) if word.endswith(".py")), 0)
    return [PurePath(word).name for word in left[first:]], {name: value for _, name, value in options}
