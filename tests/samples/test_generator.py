"""The generated samples are what their generator writes, say what they are, and leave no kind out."""

import gzip
import re
from pathlib import Path

import pytest

from tests.samples import generate
from tests.samples.scenarios import SCENARIOS, Scenario
from tests.support.logs import SAMPLES

RECORDED = SAMPLES / "recorded"
FACTS = Path(__file__).parents[1] / "golden" / "samples"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.folder)
def test_generator_reproduces_the_committed_files(scenario: Scenario) -> None:
    names = {"host.csv", "training.csv", *generate.WRITERS}
    committed = {
        path.name: (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())
        for path in (SAMPLES / scenario.folder).iterdir()
        if path.name in names
    }
    generated = {name: text.encode("ascii") for name, text in generate.files(scenario).items()}
    assert sorted(name for name in committed | generated if committed.get(name) != generated.get(name)) == []


def test_every_kind_has_a_sample_of_its_name() -> None:
    reference = (SAMPLES.parent / "docs" / "reference" / "kinds.md").read_text(encoding="utf-8")
    kinds = re.findall(r"^## (\w+)$", reference, re.MULTILINE)
    assert len(kinds) > 30
    facts = {kind: [*FACTS.glob(f"{kind}.txt"), *FACTS.glob(f"{kind}/*.txt")] for kind in kinds}
    lacking = [
        kind for kind, files in facts.items() if not any(f"finding {kind} " in path.read_text() for path in files)
    ]
    assert lacking == []


def test_samples_say_what_they_are_and_stay_small() -> None:
    readmes = {path.parent.name: path.read_text(encoding="utf-8") for path in SAMPLES.glob("*/README.md")}
    assert readmes.keys() == {path.name for path in SAMPLES.iterdir()}
    assert "recorded on" in readmes.pop("recorded")
    assert [name for name, text in readmes.items() if "generated" not in text] == []
    (steps,) = {scenario.job.steps for scenario in SCENARIOS if scenario.folder.startswith("input_starved/")}
    assert f"--work {steps}:steps" in readmes["input_starved"]
    # Generated ones under one megabyte and recorded ones under 420 kB, since every wheel carries them.
    sizes = {path: path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()}
    recorded = sum(size for path, size in sizes.items() if RECORDED in path.parents)
    assert sum(sizes.values()) - recorded < 1_000_000
    assert recorded < 420_000
    for path in sorted(RECORDED.rglob("*.gz")):
        text = gzip.decompress(path.read_bytes())
        assert b"/tmp/" not in text
        assert b"/root/" not in text
        at = text.find(b"GPU-")
        assert at < 0 or text[at:].startswith((b"GPU-00000000-0000-0000-0000-000000000001", b"GPU-h", b"GPU-Util"))
