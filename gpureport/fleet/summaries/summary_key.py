"""What a summary is made from, as a key: where it is the same, the summary is as well.

The rules are known by the code of the analysis itself and not by a number that somebody has to raise: a summary made
by other code is made again. Labels that no rule looks at, such as user, project and job, are no part of a key, so that
labelling ten thousand runs analyses none of them again.
"""

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import gpureport
from gpureport.analysis import RULES
from gpureport.analysis.account.selection import apply_settings, list_settings
from gpureport.analysis.advice.facts import read_setup
from gpureport.analysis.job.events import is_training_name
from gpureport.analysis.job.params import find_framework
from gpureport.analysis.rulebook import Rule
from gpureport.redaction import OwnSecrets, get_own_secrets
from gpureport.settings import Settings
from gpureport.store.run_records import StoredRun

_PACKAGE = Path(gpureport.__file__).parent
_PARTS = ("*.py", "*.toml", "analysis/**/*.py", "comparison/gains.py", "fleet/*.py", "fleet/summaries/*.py")
"""What decides about the content of a summary: the analysis, the types it works on, and how it is summarised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarySettings:
    """What decides about summaries besides the runs; small, as it goes along with every run to be summarised.

    Attributes:
        settings: the settings file with the thresholds of rules, and without anything else.
        version: hash of the code of the rules.
    """

    settings: Settings
    version: str

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules with their thresholds."""
        return apply_settings(RULES, self.settings)

    @property
    def thresholds(self) -> list[tuple[str, str, float]]:
        """Every threshold that can be set, with its value."""
        return [(rule.name, name, limit.value) for rule in self.rules for name, limit in list_settings(rule).items()]


def read_summary_settings(settings: Settings) -> SummarySettings:
    """Return what of the settings decides about summaries.

    Raises:
        SettingsError: when a rule or threshold is unknown, or a value is no number.
    """
    apply_settings(RULES, settings)
    rules = {name: values for name, values in settings.content.items() if name == "rules"}
    return SummarySettings(settings=Settings(file=settings.file, content=rules), version=hash_rules())


@cache
def hash_rules() -> str:
    """Return a hash of the code that decides about the content of a summary."""
    digest = sha256(gpureport.__version__.encode())
    for path in sorted(path for part in _PARTS for path in _PACKAGE.glob(part)):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class KeyMaker:
    """Makes the keys of runs under some settings."""

    def __init__(self, settings: SummarySettings) -> None:
        own = get_own_secrets()
        self._shared = [settings.version, settings.thresholds, *([repr(own)] if own != OwnSecrets() else [])]

    def make_key(self, stored: StoredRun) -> str:
        """Return the key of a run: its series, the labels that rules look at, and the rules."""
        run, pairs = stored.run, stored.run.params_and_tags
        setup = repr((read_setup(pairs), find_framework(pairs)))
        is_training = any(is_training_name(name) for name, _ in pairs)
        made_from = (run.id, stored.series_sha256, stored.training_sha256, stored.importer_version)
        content = [*self._shared, *made_from, run.params, setup, is_training]
        return sha256(json.dumps(content).encode()).hexdigest()[:32]
