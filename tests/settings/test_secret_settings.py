"""`[secrets]` of the settings: what it takes, and what it refuses in one line without showing it."""

from typing import Any

import pytest

from gpureport.errors import SettingsError
from gpureport.limits import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction.own_secrets import OwnSecrets
from gpureport.settings import Settings
from gpureport.settings.secret_settings import read_own_secrets


def _read(**values: Any) -> OwnSecrets:  # noqa: ANN401 - whatever a file holds
    return read_own_secrets(Settings(content={"secrets": values}))


def test_names_and_patterns() -> None:
    """Both are lists; neither has to be there."""
    own = _read(names=["vault_id", "*_pin"], patterns=["corp-*"])
    assert own == OwnSecrets(names=("vault_id", "*_pin"), patterns=("corp-*",))
    assert read_own_secrets(Settings()) == OwnSecrets()


@pytest.mark.parametrize(
    ("values", "what"),
    [
        ({"names": "vault"}, "names must be a list of texts"),
        ({"patterns": [7]}, "patterns must be a list of texts"),
        ({"words": []}, "unknown key 'words' in [secrets]"),
        (
            {"patterns": ["corp-*", "(a+)+$hunter2"]},
            "text 2 of patterns cannot be used: it holds a blank, a quote, or a",
        ),
        ({"patterns": ["two words"]}, "text 1 of patterns cannot be used: it holds a blank"),
        ({"patterns": ["***x**"]}, "text 1 of patterns cannot be used: too short, it needs 4 letters besides *"),
        ({"names": ["*"]}, "text 1 of names cannot be used: too short, it needs 2 letters besides *"),
        ({"names": ["a" * (LONGEST_SECRET_PATTERN + 1)]}, "text 1 of names cannot be used: longer than 100 letters"),
        ({"names": ["ab"] * (MOST_SECRET_PATTERNS + 1)}, "names holds 101 texts, at most 100 are taken"),
    ],
)
def test_what_is_refused(values: dict[str, Any], what: str) -> None:
    """The key is named, and the text is not quoted, as it may be a secret."""
    with pytest.raises(SettingsError) as caught:
        _read(**values)
    assert what in str(caught.value)
    assert "hunter2" not in str(caught.value)
