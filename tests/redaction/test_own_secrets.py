"""Names and patterns that a person adds: what they find, and that they take no longer than the text."""

from collections.abc import Iterator

import pytest

from gpureport.redaction import HIDDEN, hide_secrets, redact_pairs, redact_text
from gpureport.redaction.own_secrets import OwnSecrets, get_own_secrets, use_own_secrets
from tests.patience import patience


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    """Put some secrets into use for a test."""
    names = ("vault_id", "*_pin", "lane*code")
    use_own_secrets(OwnSecrets(names=names, patterns=("corp-", "acme*key*", "*@intern")))
    yield
    use_own_secrets(OwnSecrets())


@pytest.mark.parametrize(
    "name", ["vault_id", "Vault-ID", "cfg.vault_id", "params/door_pin", "lane_7_code", "--vault-id", "pad_token_pin"]
)
def test_names_tell_secrets_everywhere(name: str) -> None:
    """In params, texts, JSON and on command lines, whatever the case, and before words of machine learning."""
    assert redact_pairs([(name, "4711")]) == ((name, HIDDEN),)
    assert "4711" not in redact_text(f"see {name}=4711 and {name.strip('-')} = '4711'")
    option = f"--{name.rpartition('/')[2].strip('-')}"
    assert "4711" not in " ".join(hide_secrets(["run", option, "4711", f'{{"{name}": "4711"}}']))


@pytest.mark.parametrize("name", ["vault", "vault_id_count", "door_pinned", "code", "lane"])
def test_other_names_stay(name: str) -> None:
    """A name is one of these as a whole."""
    assert redact_pairs([(name, "4711")]) == ((name, "4711"),)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see corp-77x, then", f"see {HIDDEN}, then"),
        ("https://h/corp-77/x?y=1 z", f"https://h/{HIDDEN} z"),
        ("xcorp-77 and MyCorp-7", "xcorp-77 and MyCorp-7"),
        ("acme-1-key-2 acme-1", f"{HIDDEN} acme-1"),
        ("me@intern.example me@extern", f"{HIDDEN} me@extern"),
    ],
)
def test_patterns_find_words(text: str, shown: str) -> None:
    """From where a pattern begins a word to the end of the word; its letters are as they are written."""
    assert redact_text(text) == shown


def test_patterns_find_numbers() -> None:
    """A value that is a number is a word as any other."""
    use_own_secrets(OwnSecrets(patterns=("4711*",)))
    assert redact_pairs([("badge", "47110815"), ("lr", "0.001")]) == (("badge", HIDDEN), ("lr", "0.001"))


def test_another_set_replaces_the_first() -> None:
    """What was kept of earlier texts is forgotten."""
    assert redact_text("corp-77") == HIDDEN
    use_own_secrets(OwnSecrets(patterns=("lane-",)))
    assert (redact_text("corp-77"), redact_text("lane-77")) == ("corp-77", HIDDEN)
    assert get_own_secrets().patterns == ("lane-",)


def test_stars_do_not_multiply() -> None:
    """A pattern of many stars passes over a text once; a regular expression would try every way to part it."""
    use_own_secrets(OwnSecrets(names=("a*" * 40 + "c",), patterns=("a*" * 40 + "c",)))
    word = "a" * 50_000
    with patience(15):
        assert redact_text(f"{word} {word}b") == f"{word} {word}b"
        assert redact_pairs([(word, "1")]) == ((word, "1"),)


def test_a_key_may_be_named() -> None:
    """What follows it is a secret then, whatever it looks like."""
    use_own_secrets(OwnSecrets(names=("key",)))
    assert redact_text("key: word") == "key: ***"
