"""Keeps decisions in a store, and names the jobs that run with a setting that a trial of their script found slower."""

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from gpureport.parsing import parse_json
from gpureport.places import Place
from gpureport.recorder.job_params import find_settings
from gpureport.store.atomic_writes import raise_store_errors, write_bytes
from gpureport.trial.plan import fill_command, label_setting
from gpureport.trial.suggest import split_command

FOLDER = "decisions"
_Known = tuple[int, list[str], set[tuple[str, str]], str]
"""When a setting was tried, its script and options, and what was found if another setting is faster."""
_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError)


def keep_decision(store: Place, content: dict[str, Any], trial: str, *, named: bool) -> None:
    """Write a decision to a store that exists or that the user named, in place of an earlier one of the same trial."""
    digest = sha256(json.dumps(content["plan"]).encode()).hexdigest()[:16]
    text = json.dumps({**content, "trial": trial}, indent=1, ensure_ascii=False)
    with raise_store_errors(store):
        if named or store.is_dir():
            (store / FOLDER).mkdir(parents=True, exist_ok=True)
            write_bytes(store / FOLDER / f"{digest}.json", f"{text}\n".encode(), store / FOLDER)


def find_slower(store: Place, runs: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """Yield a sentence for each slower setting, with the runs that have it. Runs are given by name and tags."""
    known: list[_Known] = []
    for path in (store / FOLDER).glob("[!.]*.json"):
        try:
            known += _read_decision(parse_json(path.read_bytes()))
        except _DAMAGED:
            continue
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
    command, tied = content["plan"]["command"], content["tied"]
    speeds = {}
    for each in content["settings"]:
        # changes are relative to the base
        change = 0.0 if each["setting"] == content["base"] else each["change"]
        if not (change is None or each["failure"] or each["quality_fell"]):
            speeds[tuple(each["setting"].items())] = (1 + change) ** content["better"]
    best = tuple((content["best"] or {}).items())
    for own, speed in speeds.items():
        gain, text = speeds.get(best, 0.0) / speed - 1, ""
        if gain > 0 and dict(own) not in tied:
            other = [pair for pair in best if pair not in own]
            mine = [pair for pair in own if pair not in best]
            found = f"{label_setting(tuple(other))} {gain:.0%} faster"
            text = f"runs with {label_setting(tuple(mine))}; trial {content['trial']} found {found}"
        words = fill_command(command, own)
        options = {(name, value) for at, name, value in find_settings(words) if words[at] != command[at]}
        yield content["runs"][-1]["started"], _split(words)[0], options, text


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return a command without its options, from its Python file on if it has one, and the options."""
    options = [*find_settings(words)]
    values = {at for at, *_ in options}
    left = [word for at, word in enumerate(words) if at not in values and not word.startswith("-")]
    first = next((at for at, word in enumerate(left) if word.endswith(".py")), 0)
    return [PurePath(word).name for word in left[first:]], {name: value for _, name, value in options}
