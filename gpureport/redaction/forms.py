"""Forms that show a secret whatever its name: how tokens begin, users of addresses, headers, and random letters.

Every pattern takes time in proportion to the text.
"""

import re

from gpureport.redaction.names import HIDDEN, hide_own

FORMS = (
    ("Hugging Face", "hf_…", r"hf_[A-Za-z0-9]{8,}"),
    ("OpenAI, Anthropic and others", "sk-…", r"sk-[\w\-]{8,}"),
    ("Stripe", "sk_live_…, rk_live_…", r"[rs]k_(?:live|test)_\w{8,}"),
    ("GitHub", "ghp_…, gho_…, ghs_…, ghu_…, ghr_…", r"gh[opsur]_[A-Za-z0-9]{8,}"),
    ("GitHub", "github_pat_…", r"github_pat_\w+"),
    ("GitLab", "glpat-…, gldt-…, glrt-…", r"gl(?:pat|dt|rt)-[\w\-]+"),
    ("Slack", "xoxb-…, xoxp-…, xapp-…", r"xox[abeprs]-[\w\-]+|xapp-[\w\-]{8,}"),
    ("AWS", "AKIA…, ASIA…", r"(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    ("Google", "AIza…, ya29.…", r"AIza[\w\-]{20,}|ya29\.[\w\-]{8,}"),
    ("NVIDIA", "nvapi-…", r"nvapi-[\w\-]{8,}"),
    ("Databricks", "dapi…", r"dapi[0-9a-f]{32}"),
    ("Vault", "hvs.…, hvb.…", r"hv[sb]\.[\w\-]{8,}"),
    ("Docker", "dckr_pat_…", r"dckr_pat_[\w\-]{8,}"),
    ("npm", "npm_…", r"npm_\w{16,}"),
    ("PyPI", "pypi-…", r"pypi-[\w\-]{16,}"),
    ("JSON web tokens, and Neptune", "eyJ…", r"eyJ[\w+/=.\-]{16,}"),
    ("Azure", "sig=…, AccountKey=…", r"sig=[\w%+/=\-]{16,}|AccountKey=[\w+/=]{16,}"),
    ("private keys", "-----BEGIN … PRIVATE KEY-----, and all that follows", r"-----BEGIN[^-]*PRIVATE KEY-----.*"),
)
"""How tokens begin: whose they are, how they look for people, and as an expression.

A letter or digit before makes it another word: `disk-usage-monitor`.
"""
_FORMS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(pattern for *_, pattern in FORMS)})", re.DOTALL)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)(\S+)", re.IGNORECASE)
_SHORTEST_CREDENTIAL = 16
"""Letters from which a word after `Bearer` or `Basic` is no word of a sentence."""
_LONGEST_USER = 1200
"""Letters of a user and a password of a URL."""
_USER_OF_URL = re.compile(rf"://(?:[^\s/:]{{0,{_LONGEST_USER}}}+:\S{{0,{_LONGEST_USER}}}|[^\s/]{{0,{_LONGEST_USER}}})@")
"""A password may hold slashes and `@`, as people forget to escape them."""
_NAMED_HOST = re.compile(r"(?<![^\s\"',;(/])[^\s\"',;(/@]*+@[^\s\"',;(/]*+")
_HOST = re.compile(r"(?!sha\d+:)(?:[A-Za-z\[]|\d+\.\d+\.)")
"""How the name or address of a machine begins, unlike what follows `@` in `recall:mean@10` and `image:tag@sha256:…`."""
_DEVICE = re.compile(r"(?:cuda|gpu|rank):\d{1,2}", re.IGNORECASE)
"""What stands before `@` in names of devices: `cuda:0@node-7`."""
_LEVEL = r"(?:[01]?[.,]\d{1,2}|\d{1,2}|100)%?"
_MEASURE = re.compile(
    rf"[^:]+:(?:(?:iou|k|top)?{_LEVEL}(?:[:\-]{_LEVEL})?"
    r"|k|mean|avg|max|min|macro|micro|weighted|iou|all|small|medium|large)",
    re.IGNORECASE,
)
"""What stands before `@` in names of metrics (`mAP:50@person`, `recall:macro@k`): no password that guards anything."""
_MACHINE = re.compile(r".*(?:\.[A-Za-z0-9\-]*[A-Za-z]|:\d+|\]|\d+\.\d+\.\d+\.\d+)", re.DOTALL)
"""How what follows `@` shows that it is a machine: by a domain, a port, or an address."""
_NAMED_AS_MACHINE = re.compile(
    r"[A-Za-z\d\-]*?(?:database|db|dgx|gpu|host|login|mysql|node-?\d|postgres|redis|server|srv)-?\d*", re.IGNORECASE
)
"""What machines are called, so that what looks like a metric before it is a user: `step:99@db`, `map:50@gpu7`."""
SHORTEST_RANDOM = 32
"""Letters from which hexadecimal digits, or a mixture of letters and digits, are as a generator writes them."""
_RANDOM = re.compile(
    rf"(?<![\w/.+\-])(?:([0-9a-fA-F]{{{SHORTEST_RANDOM},}})|[A-Za-z0-9+]{{{SHORTEST_RANDOM},}}={{0,2}})(?![\w/.+\-])"
)


def hide_forms(text: str) -> str:
    """Return a text without tokens that show what they are by how they begin, and those that a person named."""
    return hide_own(_FORMS.sub(HIDDEN, text))


def hide_random(text: str) -> str:
    """Return a text without hexadecimal digits and mixtures of letters and digits as a generator writes them."""

    def hide(found: re.Match[str]) -> str:
        is_mixed = all(any(map(kind, found[0])) for kind in (str.isupper, str.islower, str.isdigit))
        return HIDDEN if is_mixed or (found[1] and not found[1].isdigit()) else found[0]

    return _RANDOM.sub(hide, text)


def hide_schemes(text: str, *, keep_words: bool) -> str:
    """Return headers without the credential after `Bearer` or `Basic`; on request `basic training` stays."""

    def hide(found: re.Match[str]) -> str:
        is_word = found[3].isalpha() and len(found[3]) < _SHORTEST_CREDENTIAL
        return found[0] if keep_words and is_word else f"{found[1]}{found[2]}{HIDDEN}"

    return _SCHEME.sub(hide, text)


def hide_users(text: str) -> str:
    """Return a text without users and passwords of URLs, and of `user:password@host`."""
    if "@" not in text:
        return text
    return _NAMED_HOST.sub(_hide_named_user, _USER_OF_URL.sub(f"://{HIDDEN}@", text))


def _hide_named_user(found: re.Match[str]) -> str:
    """Return `user:password@host` without the user; what stands before `=` stays.

    What looks like a metric or a device holds a password only in a URL, and before what is plainly a machine.
    """
    word = found[0]
    named, _, host = word.rpartition("@")
    user, colon, password = named.partition(":")
    before, sign, user = user.rpartition("=")
    if not (colon and password and user[:1].isalpha() and _HOST.match(host)):
        return word
    named = f"{user}:{password}"
    is_metric = _MEASURE.fullmatch(named) and not _NAMED_AS_MACHINE.fullmatch(host)
    if (is_metric or _DEVICE.fullmatch(named)) and not _MACHINE.match(host):
        start = found.string[max(0, found.start() - _LONGEST_USER) : found.start()]
        if "://" not in re.split(r"\s", start)[-1]:
            return word
    return f"{before}{sign}{HIDDEN}@{host}"
