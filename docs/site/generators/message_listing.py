"""tests/golden/messages.txt: every wording that the code can print beside a code, so that a change shows as a diff."""

from generators.message_texts import list_messages

_HEAD = """# What gpureport says of each code; … stands for what is only known when the program runs.
# Tests and programs use the codes. Made by docs/site/make_pages.py; the diff is reviewed.
"""


def list_wordings() -> str:
    """Return the listing, a line for each wording, in the order of rooms and codes."""
    lines = {
        f"{message.room}\t{message.code or '-'}\t{'; '.join(filter(None, (message.what, message.hint)))}"
        for message in list_messages()
    }
    return _HEAD + "\n".join(sorted(lines)) + "\n"
