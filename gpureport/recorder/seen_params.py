"""What a run was configured with, as far as it can be seen from outside."""

from collections.abc import Sequence


def collect_params(command: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return params by name."""
    del command
    return ()
