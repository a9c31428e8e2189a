"""The rules, one module per family. A rule is a function and a section of `rules.toml`.

A new rule needs a function, sections in `rules.toml` and `kinds.toml`, a sample folder, and rows in test tables.
"""

from importlib import import_module
from pkgutil import iter_modules

from gpureport.analysis.rulebook import RULE_NAMES, Rule

_FAMILIES = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
_FOUND = {one.name: one for family in _FAMILIES for one in vars(family).values() if isinstance(one, Rule)}
RULES: tuple[Rule, ...] = tuple(_FOUND[name] for name in RULE_NAMES)
