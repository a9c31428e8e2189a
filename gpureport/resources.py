"""Where the files that ship beside the code lie: templates/ and sample_logs/."""

from pathlib import Path

_PACKAGE = Path(__file__).parent


def find_shipped_folder(name: str) -> Path:
    """Return the folder `name` shipped with the package.

    A wheel carries it inside the package; a checkout or an editable install has it beside the package.
    """
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name
