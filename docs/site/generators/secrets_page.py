"""docs/reference/secrets.md: what is replaced as a secret, made from the code that replaces it."""

from generators.pages import MADE
from gpureport.parsing import LONGEST_SECRET_PATTERN, MOST_SECRET_PATTERNS
from gpureport.redaction import HIDDEN, signs

_HEAD = f"""# Secrets

{MADE}
Before anything is stored or shown, secrets are replaced by `{HIDDEN}`: in the store, in reports of every format, in
sites, histories and files for CI, in what a command prints, in errors and in tracebacks. A replaced value takes no part
in comparisons.
"""
_NAMES = """## Names

A value is a secret if its name says so: in params and tags, on command lines, in the queries of URLs, in JSON, in
headings and cells of tables, and wherever a text holds `name=value`, `name: value` or `--name value`. A name is taken
apart at signs and capitals: `wandb.apiKey` is `wandb`, `api` and `key`.

- anywhere in the name, without signs: {anywhere} (`db.password`, `API_KEY`)
- the end of a part: {endings} (`hf_token`, `MYSQL_PWD`)
- a whole part: {words} (`sas_url`)

`token`, `key` and `auth` also name settings. In params, tags and texts they do not count beside one of: {model}. Nor do
a plural (`max_tokens`) and a word that is not the last (`key_dim`), if the value is a number, `true` or `false`, nor
words that only end so: {others}. In sentences, plain words and short numbers after `token:` and `key:` stay. On a
command line the words beside do not count: a hidden value costs a reader less than a shown password.
"""
_FORMS = """## Forms

These are secrets whatever their name: {forms}. Further, users and passwords of addresses (`https://user:password@host`,
`user:password@host`, and what looks so, such as `mAP:50@person`), `Bearer …`, `Basic …`, all that follows
`Authorization:` and `Cookie:`, and random letters as the value of a param or tag and on a command line: {shortest} or
more hexadecimal digits, or capitals, small letters and digits.
"""
_OWN = f"""## Your own

`gpureport.toml`, in the folder where a command runs or named by `--config`, adds names and patterns:

```toml
[secrets]
names = ["vault_id", "*_pin"]   # params, tags, options, variables, keys of JSON
patterns = ["corp-", "*@intern"]   # words of any text
```

- A **name** is the whole name, or its last part after a dot, a slash or a colon, in any case; `-` and `_` are the same.
  `*` stands for any letters.
- A **pattern** is how a secret begins, with its case; the rest of the word is replaced with it. `*` stands for any
  letters but blanks, quotes and `, ; & ( ) < > |`.
- At most {MOST_SECRET_PATTERNS} of each, of {LONGEST_SECRET_PATTERN} letters.
- They hold for every command, but not for help and for completion on Tab, which read no settings. A mistake in
  `[secrets]` stops every command. `record`, `ingest`, `runs`, `baseline` and `publish` have no `--config`: they take
  the file of the folder.
- In Python, give them to `analyze`: `settings={{"secrets": {{"names": ["vault_id"]}}}}`. They hold from then on.
"""
_STAYS = """## What is not replaced

- A secret under a harmless name and without a known form. Name it in `[secrets]`.
- Text before `@` and a number or a checksum: `recall:mean@10`, `image:tag@sha256:…`. Outside a URL, a password with a
  slash or a quote is not recognised.
- Random letters in texts, and in params and tags whose names mean checksums and ids: {checksums}.
- Names that you choose for files, folders and baselines, on disk.
- What was stored by an earlier version or before a setting: no command shows or exports it, but the files hold it until
  `gpureport ingest --force LOG`. Nights in the history, and pages that exist already, stay as they are.
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
