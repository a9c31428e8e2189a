"""docs/reference/secrets.md: what is replaced as a secret, made from the code that replaces it."""

import textwrap

from generators.pages import MADE, table
from gpureport.limits import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction import HIDDEN, signs

_HEAD = f"""# Secrets

{MADE}
Before anything is stored or shown, secrets are replaced by `{HIDDEN}`: in the store, in reports of every format, in
sites, histories and files for CI, in what a command prints, in errors and in tracebacks. A secret is told by its name,
by its form, or by your own settings. A replaced value takes no part in comparisons.

## Names

A value is a secret if its name says so, whatever the value is: in params and tags, on command lines, in the queries of
URLs, in JSON, in headings and cells of tables, and wherever a text holds `name=value`, `name: value` or `--name value`.
A name is taken apart at signs and capitals: `wandb.apiKey` is `wandb`, `api` and `key`.
"""
_WORDS_THAT_STAY = """
`token`, `key` and `auth` name settings too. In params, tags and texts, none of them tells a secret beside one of these
words: {model}. A plural (`max_tokens`), and a word that is not the last one (`key_dim`), tell none where the value is a
number, `true` or `false`. Words that merely end so tell none: {others}. In a sentence, what follows `token:` stays
unless it has a digit and is no number of up to nine digits. So does what follows `API key:`, `licence key:` and the
like; what follows another `key:` stays unless it looks random. After `per token:`, `ms/token:`, `total token:` and the
like, decimals and numbers of up to 18 digits stay. On a command line the words beside do not count: a hidden value
costs a reader less than a shown password.
"""
_RANDOM = """\
- Random letters in texts, and in params and tags whose names speak of checksums and ids: {checksums}."""
_FORMS = """## Forms

These are secrets whatever their name is:
"""
_OWN = f"""## Your own

`gpureport.toml`, in the folder where a command runs or named by `--config`, adds names and patterns:

```toml
[secrets]
names = ["vault_id", "*_pin"]   # params, tags, options, variables, keys of JSON
patterns = ["corp-", "*@intern"]   # words of any text
```

- A **name** is meant as a whole, or as the last part after a dot, a slash or a colon, whatever its case; `-` and `_`
  are the same. `*` stands for any letters.
- A **pattern** is how a secret begins; it begins where a word does, with its case, and the rest of the word is replaced
  with it. `*` stands for any letters but blanks, quotes and `, ; & ( ) < > |`.
- At most {MOST_SECRET_PATTERNS} of each, of {LONGEST_SECRET_PATTERN} letters. They are no regular expressions, whose
  time may grow without bounds.
- They hold for every command, before it does anything, but not for help and for what a shell completes on Tab: these
  read no settings, and Tab offers the names of stored runs as the store holds them. No command begins where the file is
  no TOML, or where `[secrets]` holds a mistake or is misspelt. A mistake elsewhere in the file stops the commands that
  read that section.
- `record`, `ingest`, `runs`, `baseline` and `publish` have no `--config`: they take the file of the folder.
- In Python, give them to `analyze`: `settings={{"secrets": {{"names": ["vault_id"]}}}}`. They hold from then on.

## What is not replaced

- A secret under a harmless name and without a known form: it looks like any other word. Name it in `[secrets]`.
- What stands before `@` and a number or a checksum: `recall:mean@10`, `image:tag@sha256:…`. Nor, outside a URL, a
  password that holds a slash or a quote.
{{random}}
- Names that you choose for files, folders and baselines, on disk.
- Files of a store that were written by an earlier version or before a setting: no command shows or exports what has
  become a secret since, but the files hold it until `gpureport ingest --force LOG` reads the log again. A night in the
  history, and pages and reports that lie somewhere already, stay as they are.
- Your sources: they are only read.
"""


def secrets_page() -> str:
    """Return docs/reference/secrets.md."""
    rows = [
        ("letters anywhere in it, signs left out", _list(signs.ANYWHERE), "`db.password`, `API_KEY`"),
        ("the end of a part", _list(signs.ENDINGS), "`hf_token`, `MYSQL_PWD`, `apiToken`"),
        ("a whole part", _list(signs.WORDS), "`jwt`, `sas_url`"),
    ]
    words = {"model": _list(signs.MODEL_WORDS), "others": _list(signs.OTHER_ENDINGS)}
    shown = [(owner, f"`{shown}`") for owner, shown, _ in signs.FORMS]
    shown += [
        ("users and passwords of addresses", "`https://user:password@host`, `user:password@host`"),
        ("names that look so, as a password may be a word or a number", "`mAP:50@person`, shown as `***@person`"),
        ("headers", "`Bearer …`, `Basic …`, and all that follows `Authorization:` and `Cookie:`"),
        (
            "random letters, as the value of a param or tag and on a command line",
            f"{signs.SHORTEST_RANDOM} or more hexadecimal digits, or capitals, small letters and digits",
        ),
    ]
    return "\n".join(
        [
            _HEAD,
            table(("a name tells a secret by", "these", "such as"), rows)[:-1],
            "\n" + _fill(_WORDS_THAT_STAY.format(**words)) + "\n",
            _FORMS,
            table(("whose", "form"), shown),
            _OWN.replace("{random}", _fill(_RANDOM.format(checksums=_list(signs.CHECKSUM_WORDS)), indent="  ")),
        ]
    )


def _fill(text: str, indent: str = "") -> str:
    """Return a paragraph in lines of at most 120 letters."""
    one_line = " ".join(text.split())
    return textwrap.fill(one_line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _list(words: str) -> str:
    return ", ".join(f"`{word}`" for word in words.split())
