"""Writes docs/reference/secrets.md, the list of secrets, from the code that replaces them."""

from generators.pages import MADE
from gpureport.parsing import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction import HIDDEN, signs

_HEAD = f"""# Secrets

{MADE}
Before anything is stored or shown, secrets are replaced with `{HIDDEN}`: in the store, in reports of every format, in
sites, histories and files for CI, in printed output, in errors and in tracebacks. Replaced values are not compared.
"""
_NAMES = """## Names

A value is treated as secret if its name suggests so: in params and tags, on command lines, in URL queries, in JSON,
in table headings and cells, and wherever a text contains `name=value`, `name: value` or `--name value`. A name is
split at punctuation and capitals: `wandb.apiKey` is `wandb`, `api` and `key`.

- anywhere in the name, without punctuation: {anywhere} (`db.password`, `API_KEY`)
- the end of a part: {endings} (`hf_token`, `MYSQL_PWD`)
- a whole part: {words} (`sas_url`)

`token`, `key` and `auth` also name settings. In params, tags and texts, they are ignored next to one of: {model}.
Plurals (`max_tokens`) and words before the last (`key_dim`) are ignored if the value is a number, `true` or `false`.
Ordinary words are ignored too: {others}. In sentences, plain words and short numbers after `token:` or `key:` are kept.
On a command line, neighbouring words do not matter: hiding a value does less harm than showing a password.
"""
_FORMS = """## Forms

Values in these forms are secret under any name: {forms}. So are users and passwords in addresses
(`https://user:password@host`, `user:password@host`, and look-alikes such as `mAP:50@person`), `Bearer …`, `Basic …`,
everything after `Authorization:` and `Cookie:`, and random characters as the value of a param or tag and on a command
line: {shortest} or more hexadecimal digits, or upper- and lower-case letters and digits.
"""
_OWN = f"""## Your own

`gpureport.toml`, in the folder where a command runs or specified by `--config`, adds names and patterns:

```toml
[secrets]
names = ["vault_id", "*_pin"]   # params, tags, options, variables, keys of JSON
patterns = ["corp-", "*@intern"]   # words of any text
```

- A **name** matches the whole name, or its last part after a dot, a slash or a colon. Case is ignored, `-` equals `_`.
  `*` matches any characters.
- A **pattern** is the beginning of a secret, in its exact case; the rest of the word is replaced too. `*` matches any
  characters except spaces, quotes and `, ; & ( ) < > |`.
- Each list may have {MOST_SECRET_PATTERNS} entries of up to {LONGEST_SECRET_PATTERN} characters.
- Names and patterns apply to every command, but not to help and Tab completion, which read no settings. A mistake in
  `[secrets]` stops every command. `record`, `ingest`, `runs`, `baseline` and `publish` have no `--config`: they use the
  file in the folder.
- In Python, pass them to `analyze`: `settings={{"secrets": {{"names": ["vault_id"]}}}}`. They apply from then on.
"""
_STAYS = """## What is not replaced

- A secret with a harmless name and no known form. Name it in `[secrets]`.
- Text before `@` if a number or checksum follows: `recall:mean@10`, `image:tag@sha256:…`. Outside a URL, a password
  with a slash or a quote is not recognised.
- Random characters in texts, and in params and tags whose names indicate checksums and ids: {checksums}.
- Names that you choose for files, folders and baselines on disk.
- A secret stored by an earlier version or before a setting: no command shows or exports it, but files contain it until
  `gpureport ingest --force LOG`. Nights in the history, and existing pages, are not changed.
- Your sources: they are only read.
"""


def secrets_page() -> str:
    """Return docs/reference/secrets.md."""
    forms = ", ".join(f"`{shown}` ({owner})" for owner, shown, _ in signs.FORMS)
    names = {
        "anywhere": _list(signs.ANYWHERE),
        "endings": _list(signs.ENDINGS),
        "words": _list(signs.WORDS),
        "model": _list(signs.MODEL_WORDS),
        "others": _list(signs.OTHER_ENDINGS),
    }
    parts = [
        _NAMES.format(**names),
        _FORMS.format(forms=forms, shortest=signs.SHORTEST_RANDOM),
        _OWN,
        _STAYS.format(checksums=_list(signs.CHECKSUM_WORDS)),
    ]
    return "\n".join([_HEAD, *parts])


def _list(words: str) -> str:
    return ", ".join(f"`{word}`" for word in words.split())
