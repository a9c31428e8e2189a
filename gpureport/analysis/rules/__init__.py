"""The rules, one module a family of ways to lose GPU time: a rule is a function, and its section of `rules.toml`.

A new detector: the function, its sections of `rules.toml` and `kinds.toml`, one sample folder, one row of a test table.
"""

from gpureport.analysis.rulebook import RULE_NAMES, Rule
from gpureport.analysis.rules import (
    balance,
    clocks,
    edges,
    health,
    hollow,
    idle,
    levels,
    low_use,
    memory,
    progress,
    sizing,
    waits,
)

_FAMILIES = (balance, clocks, edges, health, hollow, idle, levels, low_use, memory, progress, sizing, waits)
_FOUND = {one.name: one for family in _FAMILIES for one in vars(family).values() if isinstance(one, Rule)}
RULES: tuple[Rule, ...] = tuple(_FOUND[name] for name in RULE_NAMES)
"""Every rule, as `rules.toml` orders them; `analyze` runs them in the order their needs ask for."""
