"""Every error message of the code has an entry in docs/reference/messages.md."""

import re

import pytest

from gpureport.cli.main import main
from gpureport.redaction import redact_text
from tests.docs import messages_page
from tests.docs.usage_errors import USAGE_ERRORS, UsageError

_HOW = (
    "run `python -m pytest tests/docs/test_messages.py --update-golden`, and write the cause below a new heading of "
    "docs/reference/messages.md, above its remedies, where the message does not say it"
)


def test_every_message_has_an_entry(*, update_golden: bool) -> None:
    """The page names each message of the code with its remedies, and no other."""
    made = messages_page.messages_page()
    if update_golden:
        messages_page.PAGE.write_text(made, encoding="utf-8", newline="\n")
    page = messages_page.PAGE.read_text(encoding="utf-8")
    named, raised = (set(re.findall(r"^### (.+)$", text, flags=re.MULTILINE)) for text in (page, made))
    if page != made:
        pytest.fail(f"missing: {sorted(raised - named)}; no longer raised: {sorted(named - raised)}; {_HOW}")


def test_no_message_looks_like_a_secret() -> None:
    """Errors are printed without secrets, and with all else that they say."""
    lines = messages_page.PAGE.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if redact_text(line) != line] == []


def test_every_entry_says_what_to_do() -> None:
    """Where the remedy is only known when the program runs, a person wrote what the message means."""
    assert list(messages_page.list_unexplained()) == [], "write below these headings what causes them and what to do"


@pytest.mark.parametrize("error", USAGE_ERRORS, ids=lambda error: error.text)
def test_a_mistyped_command_says_what_the_page_names(error: UsageError, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 2 and the message, in one line that names the help to ask."""
    with pytest.raises(SystemExit) as ended:
        main([*error.arguments])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    # versions of click differ in what stands around a name
    assert re.search(".*".join(map(re.escape, error.text.split("…"))).replace(r"\ .*", ".*"), said), said
    assert re.fullmatch(rf"gpureport: .*\(see 'gpureport {error.arguments[0]}.* --help'\)\n", said), said
