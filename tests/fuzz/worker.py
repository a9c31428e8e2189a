"""Gives texts to one reader in a process of its own, guided by coverage where atheris is installed.

What comes out is written line by line: an offence as it is found, and how many executions there were.
"""

import argparse
import json
import os
import random
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

IS_GUIDED = find_spec("atheris") is not None
_EVERY = 200
"""Executions after which their number is written down."""
_MEMORY_MIB = 4096
_HANG = 120
"""Seconds after which a text is given up on that does not even let itself be interrupted."""
_VALUE = re.compile(rb'"[^"\n]*"|-?\d[\d.eE+-]*|true|false|null')
_ODD_VALUES = (
    *(b"null", b"true", b"-1", b"0", b"0.5", b"1e400", b"NaN", b"9" * 30, b"9" * 400, b"9" * 5000, b"0x" + b"f" * 5000),
    *(
        b'""',
        b'"x"',
        b'"\\ud800"',
        b'"\\u0000"',
        b'"' + b"x" * 300 + b'"',
        b"[]",
        b"{}",
        b"[[",
        b'[1, "a"]',
        b"2026-03-14",
    ),
)
"""What JSON, TOML or a table may hold in place of a value."""

if IS_GUIDED:
    atheris: Any = import_module("atheris")
    # never left: modules are loaded as late as their first use
    atheris.instrument_imports(include=["gpureport"]).__enter__()

from tests.fuzz.execution import LARGEST, execute, prepare  # noqa: E402 - instrumented from here on
from tests.fuzz.mutations import MUTATIONS  # noqa: E402 - as above
from tests.fuzz.targets import TARGETS  # noqa: E402 - as above


class Campaign:
    """The executions of one target, and what they found."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Write what the target needs."""
        self.target = TARGETS[options.target]
        self._path = prepare(self.target, options.folder)
        self._options = options
        self._until = time.monotonic() + options.seconds
        self._found: set[str] = set()
        self.executions = 0

    def run(self, data: bytes) -> bool:
        """Give one text to the reader; return whether there is still something to do."""
        offence = execute(self.target, self._path, data)
        self.executions += 1
        if offence is not None and offence.where not in self._found:
            self._found.add(offence.where)
            self._tell(where=offence.where, what=offence.what, data=data.hex())
        done = self.executions >= self._options.executions or time.monotonic() >= self._until
        if done or self.executions % _EVERY == 0:
            self._tell(executions=self.executions)
        return not done

    def _tell(self, **content: object) -> None:
        with self._options.out.open("a", encoding="utf-8") as file:
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
    atheris.Setup([sys.argv[0], *flags, "-close_fd_mask=1", "-verbosity=0", str(corpus)], run, custom_mutator=change)
    atheris.Fuzz()


def main() -> None:
    """Read the options and begin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--executions", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    campaign = Campaign(options)
    if IS_GUIDED:
        run_guided(campaign, options.seed, options.corpus)
    else:
        run_blindly(campaign, options.seed)


if __name__ == "__main__":
    main()
