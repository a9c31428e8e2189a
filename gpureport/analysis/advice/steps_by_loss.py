"""Which steps lead out of which kind of loss, the most promising first."""

from gpureport.analysis.detectors import RULES
from gpureport.analysis.rules.kind_description import AdvicePath

PATHS: dict[str, tuple[AdvicePath, ...]] = {
    kind.name: kind.advice_paths for rule in RULES for kind in rule.descriptions
}
"""The steps of each kind, by groups of causes; the first path that fits a finding is its own."""


def find_steps(kind: str, cause: str | None = None) -> tuple[str, ...]:
    """Return the names of the steps for a finding, the most promising first; none for a kind without any."""
    fitting = (path for path in PATHS.get(kind, ()) if not path.causes or cause in path.causes)
    return next((path.steps for path in fitting), ())
