"""Gives texts to one reader in a process of its own, guided by coverage where atheris is installed."""

import json
import os
import random
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__all__ = ["TARGETS", "Work", "mutate", "work_through"]

IS_GUIDED = find_spec("atheris") is not None
_EVERY = 200
"""Executions after which their number is written down."""
_MEMORY_MIB = 4096
_HANG = 120
"""Seconds after which a text is given up on that does not even let itself be interrupted."""
_VALUE = re.compile(rb'"[^"\n]*"|-?\d[\d.eE+-]*|true|false|null')
_ODD_VALUES = (
    *rb'null true -1 0 0.5 1e400 NaN "" "x" "\ud800" "\u0000" [] {} [[ [1,"a"] 2026-03-14'.split(),
    *(b"9" * 30, b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000, b'"' + b"x" * 300 + b'"'),
)
"""What JSON, TOML or a table may hold in place of a value."""

if IS_GUIDED:
    atheris: Any = import_module("atheris")
    # never left: modules are loaded as late as their first use
    atheris.instrument_imports(include=["gpureport"]).__enter__()

from tests.fuzz.execution import LARGEST, execute, prepare  # noqa: E402 - instrumented from here on
from tests.fuzz.mutations import MUTATIONS  # noqa: E402 - as above
from tests.fuzz.targets import TARGETS  # noqa: E402 - as above


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a worker is to do.

    Attributes:
        target: name of the target.
        executions: how many texts it gives to the reader at most.
        until: when it ends at the latest, by the monotonic clock.
        seed: another gives other texts.
        folder: an empty folder, in which the reader's input lies.
        corpus: folder of texts that reach new code.
        out: file it writes to, line by line: offences as they are found, and how many executions there were.
    """

    target: str
    executions: int
    until: float
    seed: int
    folder: Path
    corpus: Path
    out: Path


class Campaign:
    """The executions of one target, and what they found."""

    def __init__(self, work: Work) -> None:
        """Write what the target needs."""
        self.target = TARGETS[work.target]
        self._path = prepare(self.target, work.folder)
        self._work = work
        self._found: set[str] = set()
        self._executions = 0

    def run(self, data: bytes) -> bool:
        """Give one text to the reader; return whether there is still something to do."""
        offence = execute(self.target, self._path, data)
        self._executions += 1
        if offence is not None and offence.where not in self._found:
            self._found.add(offence.where)
            self._tell(where=offence.where, what=offence.what, data=data.hex())
        done = self._executions >= self._work.executions or time.monotonic() >= self._work.until
        if done or self._executions % _EVERY == 0:
            self._tell(executions=self._executions)
        return not done

    def _tell(self, **content: object) -> None:
        with self._work.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")


def mutate(data: bytes, chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a text damaged once, with another value, or spliced with another."""
    if chance.random() < 0.1:
        other = chance.choice(seeds)
        return data[: chance.randrange(len(data) + 1)] + other[chance.randrange(len(other) + 1) :]
    if chance.random() < 0.4 and (values := [*_VALUE.finditer(data)]):
        found = chance.choice(values)
        return data[: found.start()] + chance.choice(_ODD_VALUES) + data[found.end() :]
    return chance.choice(MUTATIONS)(data or b"\n", chance)


def run_blindly(campaign: Campaign, seed: int) -> None:
    """Damage seeds at random until the executions or the time are used up."""
    chance, seeds = random.Random(f"{campaign.target.name} {seed}"), campaign.target.seeds
    for data in seeds:
        if not campaign.run(data[:LARGEST]):
            return
    while True:
        data = chance.choice(seeds)
        for _ in range(chance.randint(1, 6)):
            data = mutate(data, chance, seeds)
        if not campaign.run(data[:LARGEST]):
            return


def run_guided(campaign: Campaign, seed: int, corpus: Path) -> None:
    """Let libFuzzer choose what to damage, half of the time in ways of ours; it does not return."""
    for place, data in enumerate(campaign.target.seeds):
        (corpus / f"seed{place}").write_bytes(data[:LARGEST])

    def run(data: bytes) -> None:
        if not campaign.run(data):
            os._exit(0)

    def change(data: bytes, most: int, number: int) -> bytes:
        chance = random.Random(number)
        if chance.random() < 0.5:
            return bytes(atheris.Mutate(data, most))
        return mutate(data, chance, campaign.target.seeds)[:most]

    flags = [f"-max_len={LARGEST}", f"-seed={seed + 1}", f"-rss_limit_mb={_MEMORY_MIB}", f"-timeout={_HANG}"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], run, custom_mutator=change)
    atheris.Fuzz()


def work_through(work: Work) -> None:
    """Do it, in a process of its own."""
    # libFuzzer is as talkative as the reader
    with work.out.with_suffix(".err").open("wb") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    campaign = Campaign(work)
    if IS_GUIDED:
        run_guided(campaign, work.seed, work.corpus)
    else:
        run_blindly(campaign, work.seed)
