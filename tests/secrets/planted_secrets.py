"""Secrets to plant, each another one, and the search for them in all that the program writes."""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from tests.support.program import Outcome, Program
from tests.support.tables import read_table, words_of

SHAPES = (
    *("ghp_{}", "glpat-{}", "hf_{}", "sk-{}", "xoxb-{}", "AKIA{}", "npm_{}", "pypi-{}", "nvapi-{}", "hvs.{}"),
    *("https://me:{}@host/x", "https://host/x?token={}", "https://host/x?X-Amz-Signature={}&v=1", "Bearer {}"),
    *("api_key={}", "password: {}", "--hf-token {}", "me:{}@host"),
)
"""Forms that show a secret, whatever name it has."""
HIDDEN = "***"
"""What stands in the place of a secret."""


@dataclass
class Planter:
    """Makes secrets, and knows where each was planted."""

    places: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def plant(self, place: str) -> str:
        secret = f"QZ{next(self._numbers):03d}W7K3M9T5R1X8"
        self.places[secret] = place
        return secret

    def plant_shaped(self, place: str) -> str:
        """Return a text that shows a secret by its form; each time of another form."""
        form = SHAPES[len(self.places) % len(SHAPES)]
        return form.format(self.plant(f"{place} as {form}"))

    def fill(self, text: str, place: str) -> str:
        """Return a text with a secret in each place that is marked `{secret}`, and one with its form at `{shaped}`."""
        planted = {"secret": self.plant, "shaped": self.plant_shaped}
        return re.sub(r"\{(secret|shaped)\}", lambda mark: planted[mark[1]](place), text)


@dataclass
class Exits:
    folder: Path
    texts: dict[str, list[bytes]] = field(default_factory=dict)
    sources: set[Path] = field(default_factory=set)
    outcomes: list[tuple[str, Outcome]] = field(default_factory=list)

    def run(self, gpureport: Program, *command: str) -> Outcome:
        done = gpureport(*command)
        self.texts[f"{len(self.outcomes)} {' '.join(command)[:60]}"] = [done.out.encode(), done.err.encode()]
        self.outcomes.append((" ".join(command), done))
        return done

    def run_all(self, gpureport: Program, group: str, **given: str) -> None:
        """Run the commands that `commands.tsv` has for a test; each does its work, whatever a check finds."""
        for name, command in read_table(Path(__file__).with_name("commands.tsv")):
            if name == group:
                assert self.run(gpureport, *words_of(command, **given)).code in {0, 1, 4}, self.outcomes[-1]

    def collect_files(self) -> set[str]:
        """Read each file that was written since, besides what was read of it before; return their names."""
        written = [path for path in self.folder.rglob("*") if path.is_file() and path not in self.sources]
        for path in written:
            self.texts.setdefault(str(path.relative_to(self.folder)), []).extend(read_plain(path))
        return {path.name for path in written}

    def find_leaks(self, planter: Planter) -> list[tuple[str, str]]:
        return sorted(
            (place, exit_)
            for secret, place in planter.places.items()
            for exit_, contents in self.texts.items()
            if any(secret.encode() in content for content in contents)
        )


def read_plain(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield content
    if path.suffix == ".zst":
        yield pa.CompressedInputStream(pa.BufferReader(content), "zstd").read()
    if path.suffix == ".gz":
        yield gzip.decompress(content)
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
        texts = [{*map(str, each.to_pylist())} for each in table.columns if not pa.types.is_primitive(each.type)]
        yield str([table.column_names, texts, table.schema.metadata]).encode()
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL):
        try:
            yield zlib.decompress(stream)
        except zlib.error:
            continue
