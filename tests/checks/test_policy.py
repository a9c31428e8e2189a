"""The policy in the settings, and the line of every mistake."""

from datetime import date
from pathlib import Path

import pytest

from gpureport.checks.policy import LimitScope, Policy
from gpureport.errors import SettingsError
from gpureport.testing import Confidence
from tests.nightly.nights import policy

WHOLE = """
[[policy]]
limit = "gpu_utilization_ratio >= 80%"

[[policy]]
limit = "no idle_gap"
for = { gpu = [2, 0], step = "night-*", source = "node1*" }
unless = "duration < 10 min"
confidence = "high"

[[acknowledge]]
finding = "thermal_throttle"
reason = "the fan of rack 4 is ordered"
until = 2026-12-31

[[acknowledge]]
limit = "gpu_utilization_ratio >= 80%"
reason = "known"
until = "2026-12-24"
"""


def test_a_whole_policy_is_read(tmp_path: Path) -> None:
    """Limits with where they apply and when they do not, and what is acknowledged until when."""
    found = policy(tmp_path, WHOLE)
    first, second = found.entries
    assert (first.scope, first.unless, first.confidence) == (LimitScope(), None, Confidence.MEDIUM)
    assert second.scope == LimitScope(gpus=(0, 2), step="night-*", source="node1*")
    assert second.confidence is Confidence.HIGH
    words = "no idle_gap for GPU 0, 2, step night-*, source node1* unless duration < 10 min"
    assert (second.words, second.origin) == (words, f"{tmp_path}/gpureport.toml:6")
    assert [known.until for known in found.acknowledged] == [date(2026, 12, 31), date(2026, 12, 24)]
    assert found.acknowledged[0].finding == {"thermal_throttle"}
    assert found.acknowledged[1].limit == "gpu_utilization_ratio mean >= 80%"


def test_no_section_is_no_limit(tmp_path: Path) -> None:
    """Settings without a policy state none."""
    assert policy(tmp_path, "[prices]\n") == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('\n[[policy]]\nlimit = "idle_ratoi <= 5%"\n', r":3: nothing is called 'idle_ratoi'; did you mean"),
        ('[[policy]]\nlimit = "no idle_gap"\n\n[[policy]]\nlimit = "lost"\n', r":5: lost without an amount"),
        ("[[policy]]\nlimit = 3\n", r":2: limit must be a text"),
        ("[[policy]]\nfor = { gpu = 0 }\n", r":2: a policy without limit"),
        ('[[policy]]\nlimit = "problem"\nlimits = "x"\n', r":3: unknown key 'limits'"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpus = 0 }\n', r":3: for must be a table of gpu, source, step"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpu = "0" }\n', r":3: gpu must be an index or several"),
        ('[[policy]]\nlimit = "problem"\nfor = { gpu = true }\n', r":3: gpu must be an index or several"),
        ('[[policy]]\nlimit = "problem"\nfor = { step = 3 }\n', r":3: step must be a text"),
        ('[[policy]]\nlimit = "problem"\n# why\nunless = "idle"\n', r":4: idle without an amount"),
        ('[[policy]]\nlimit = "problem"\nunless = "change idle_ratio <= 1 point"\n', r":3: an exception cannot be"),
        ('[[policy]]\nlimit = "problem"\nconfidence = "sure"\n', r":3: no confidence 'sure'"),
        ('[policy]\nlimit = "problem"\n', r"policy must be an array of tables; write \[\[policy\]\]"),
        ('[[acknowledge]]\nfinding = "idle_gap"\nuntil = 2026-12-31\n', r":2: an acknowledgement without reason"),
        ('[[acknowledge]]\nfinding = "idle_gap"\nreason = "x"\n', r":2: an acknowledgement without until"),
        (
            '[[acknowledge]]\nreason = "x"\nuntil = 2026-12-31\n',
            r":2: an acknowledgement is of a finding or of a limit",
        ),
        ('[[acknowledge]]\nfinding = "idle_gp"\nreason = "x"\nuntil = 2026-12-31\n', r":2: no kind 'idle_gp'; did you"),
        ('[[acknowledge]]\nfinding = "problem"\nreason = "x"\nuntil = 2026-12-31\n', r":2: no kind 'problem'"),
        ('[[acknowledge]]\nfinding = "idle_gap"\nreason = "x"\nuntil = "soon"\n', r":4: until must be a day"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """Every mistake names the file and the line it is on."""
    with pytest.raises(SettingsError, match=message) as caught:
        policy(tmp_path, text)
    assert str(tmp_path / "gpureport.toml") in str(caught.value)


def test_an_option_names_itself() -> None:
    """A limit of the command line that is none names the option."""
    with pytest.raises(SettingsError, match=r"^--fail-on: nothing is called 'idel'"):
        Policy().with_limits(["idel <= 3%"])
