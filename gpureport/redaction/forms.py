"""Forms that show a secret whatever its name: how tokens begin, users of addresses, headers, and random letters."""

import re
from dataclasses import dataclass

from gpureport.redaction.own_secrets import get_own_secrets

HIDDEN = "***"


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a token looks.

    Attributes:
        of: whose it is.
        shown: how it looks, for people.
        pattern: the same as a regular expression; a beginning and letters, so that its time is that of the text.
    """

    of: str
    shown: str
    pattern: str


FORMS = (
    Form(of="Hugging Face", shown="hf_…", pattern=r"hf_[A-Za-z0-9]{8,}"),
    Form(of="OpenAI, Anthropic and others", shown="sk-…", pattern=r"sk-[\w\-]{8,}"),
    Form(of="Stripe", shown="sk_live_…, rk_live_…", pattern=r"[rs]k_(?:live|test)_\w{8,}"),
    Form(of="GitHub", shown="ghp_…, gho_…, ghs_…, ghu_…, ghr_…", pattern=r"gh[opsur]_[A-Za-z0-9]{8,}"),
    Form(of="GitHub", shown="github_pat_…", pattern=r"github_pat_\w+"),
    Form(of="GitLab", shown="glpat-…, gldt-…, glrt-…", pattern=r"gl(?:pat|dt|rt)-[\w\-]+"),
    Form(of="Slack", shown="xoxb-…, xoxp-…, xapp-…", pattern=r"xox[abeprs]-[\w\-]+|xapp-[\w\-]{8,}"),
    Form(of="AWS", shown="AKIA…, ASIA…", pattern=r"(?:AKIA|ASIA)[A-Z0-9]{12,}"),
    Form(of="Google", shown="AIza…, ya29.…", pattern=r"AIza[\w\-]{20,}|ya29\.[\w\-]{8,}"),
    Form(of="NVIDIA", shown="nvapi-…", pattern=r"nvapi-[\w\-]{8,}"),
    Form(of="Databricks", shown="dapi…", pattern=r"dapi[0-9a-f]{32}"),
    Form(of="Vault", shown="hvs.…, hvb.…", pattern=r"hv[sb]\.[\w\-]{8,}"),
    Form(of="Docker", shown="dckr_pat_…", pattern=r"dckr_pat_[\w\-]{8,}"),
    Form(of="npm", shown="npm_…", pattern=r"npm_\w{16,}"),
    Form(of="PyPI", shown="pypi-…", pattern=r"pypi-[\w\-]{16,}"),
    Form(of="JSON web tokens, and Neptune", shown="eyJ…", pattern=r"eyJ[\w+/=.\-]{16,}"),
    Form(of="Azure", shown="sig=…, AccountKey=…", pattern=r"sig=[\w%+/=\-]{16,}|AccountKey=[\w+/=]{16,}"),
    Form(
        of="private keys",
        shown="-----BEGIN … PRIVATE KEY-----, and all that follows",
        pattern=r"-----BEGIN[^-]*PRIVATE KEY-----.*",
    ),
)
"""How tokens begin. A letter or digit before makes it another word: `disk-usage-monitor`."""

_FORMS = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(form.pattern for form in FORMS)})", re.DOTALL)
_SCHEME = re.compile(r"\b(Bearer|Basic)(\s+)\S+", re.IGNORECASE)
_SHORTEST_CREDENTIAL = 16
"""Letters from which a word after `Bearer` or `Basic` is no word of a sentence."""
_BLANK = re.compile(r"\s")
_LONGEST_USER = 1200
"""Letters of a user and a password of a URL."""
_NAMED_HOST = re.compile(r"(?<![^\s\"',;(/])[^\s\"',;(/@]*+@[^\s\"',;(/]*+")
_HOST = re.compile(r"(?!sha\d+:)(?:[A-Za-z\[]|\d+\.\d+\.)")
"""How the name or address of a machine begins, unlike what follows `@` in `recall:mean@10` and `image:tag@sha256:…`."""
_MACHINE = re.compile(r"[^/]*(?:\.[A-Za-z0-9\-]*[A-Za-z]|:\d+|\]|\d+\.\d+\.\d+\.\d+)")
"""How what follows `@` shows that it is a machine: by a domain, a port, or an address."""
METRICS = (
    *("acc", "accuracy", "auc", "auroc", "batch", "bleu", "cer", "dice", "epoch", "err", "error", "fold", "hit"),
    *("hits", "iou", "iter", "loss", "mae", "map", "mar", "metric", "miou", "mrr", "mse", "ndcg", "nll", "oks"),
    *(
        "pass",
        "pck",
        "perplexity",
        "ppl",
        "precision",
        "psnr",
        "recall",
        "rouge",
        "score",
        "ssim",
        "step",
        "top",
        "wer",
    ),
)
"""Names of metrics, alone or after another word: `mAP:50@person`, `val_loss:mean@fold3`."""
SHORT_METRICS = ("ap", "ar", "f1", "hr", "kl", "lr")
"""Names of metrics alone or after a part of the data: after another word they are rather a user, as in `ann_hr`."""
_MEASURE = re.compile(
    rf"(?:(?:.*[^A-Za-z])?(?:{'|'.join(METRICS)})"
    rf"|(?:(?:bbox|eval|segm|test|train|val|valid)[_\-.])?(?:{'|'.join(SHORT_METRICS)}))\d*"
    r":(?:(?:iou|k|top)?[\d.,%:\-]+|k|mean|avg|max|min|macro|micro|weighted|iou|all|small|medium|large)",
    re.IGNORECASE,
)
"""What stands before `@` in names of metrics: `mAP:50@person`, `AP:iou50@car`, `recall:macro@k`."""
_NAMED_AS_MACHINE = re.compile(
    r"[A-Za-z\d\-]*?(?:database|db|dgx|gpu|host|login|mysql|node-?\d|postgres|redis|server|srv)-?\d*(?:/.*)?",
    re.IGNORECASE,
)
"""What follows `@` where even the name of a metric is that of a user: `step:99@db`, `map:50@gpu7`."""
_DEVICE = re.compile(r"(?:cuda|gpu|rank):\d{1,2}", re.IGNORECASE)
"""What stands before `@` in names of devices: `cuda:0@node-7`."""
SHORTEST_RANDOM = 32
"""Letters from which hexadecimal digits, or a mixture of letters and digits, are as a generator writes them."""
_RANDOM = re.compile(
    rf"(?<![\w/.+\-])(?:[0-9a-fA-F]{{{SHORTEST_RANDOM},}}|[A-Za-z0-9+]{{{SHORTEST_RANDOM},}}={{0,2}})(?![\w/.+\-])"
)


_HEX = re.compile(r"[0-9a-fA-F]+")


def hide_forms(text: str) -> str:
    """Return a text without tokens that show what they are by how they begin, and those that a person named."""
    return get_own_secrets().hide_in(_FORMS.sub(HIDDEN, text), HIDDEN)


def hide_random(text: str) -> str:
    """Return a text without hexadecimal digits and mixtures of letters and digits as a generator writes them."""
    return _RANDOM.sub(_hide_random_word, text)


def _hide_random_word(found: re.Match[str]) -> str:
    text = found.group()
    kinds = (str.isupper, str.islower, str.isdigit)
    is_hex = _HEX.fullmatch(text) is not None and not text.isdigit()
    return HIDDEN if is_hex or all(any(map(kind, text)) for kind in kinds) else text


def hide_schemes(text: str, *, keep_words: bool) -> str:
    """Return headers without the credential after `Bearer` or `Basic`; on request `basic training` stays."""

    def hide(match: re.Match[str]) -> str:
        credential = match.group().split()[-1]
        is_word = credential.isalpha() and len(credential) < _SHORTEST_CREDENTIAL
        return match.group() if keep_words and is_word else f"{match[1]}{match[2]}{HIDDEN}"

    return _SCHEME.sub(hide, text)


def hide_users(text: str) -> str:
    """Return a text without users and passwords of URLs, and of `user:password@host`."""
    if "@" not in text:
        return text
    parts, end, blank = [], 0, -1
    place = text.find("://")
    while place >= 0:
        start = place + len("://")
        if start > blank:
            found = _BLANK.search(text, start)
            blank = found.start() if found else len(text)
        at = _find_end_of_user(text, start, blank)
        if at >= 0:
            parts += [text[end:start], HIDDEN]
            end = at
        place = text.find("://", max(start, at))
    return _NAMED_HOST.sub(_hide_named_user, "".join([*parts, text[end:]]))


def _find_end_of_user(text: str, start: int, blank: int) -> int:
    """Return where the `@` is that ends user and password of a URL; -1 without any.

    A password may hold slashes and `@`, as people forget to escape them.

    Args:
        text: the text.
        start: where the user would begin.
        blank: where the URL ends at the latest.
    """
    last = text.rfind("@", start, min(blank, start + _LONGEST_USER))
    if last < 0:
        return -1
    slash = text.find("/", start, last)
    colon = text.find(":", start, last if slash < 0 else slash)
    return last if slash < 0 or colon >= 0 else text.rfind("@", start, slash)


def _hide_named_user(found: re.Match[str]) -> str:
    """Return `user:password@host` without the user; what stands before `=` stays.

    What names a metric or a device holds a password only in a URL, and before what is plainly a machine.
    """
    word = found.group()
    named, _, host = word.rpartition("@")
    user, colon, password = named.partition(":")
    before, sign, user = user.rpartition("=")
    is_user = colon and password and user[:1].isalpha() and _HOST.match(host)
    is_metric = is_user and _MEASURE.fullmatch(f"{user}:{password}") and not _NAMED_AS_MACHINE.fullmatch(host)
    is_name = is_metric or (is_user and _DEVICE.fullmatch(f"{user}:{password}"))
    if is_name and not (_MACHINE.match(host) or _is_in_url(found)):
        return word
    return f"{before}{sign}{HIDDEN}@{host}" if is_user else word


def _is_in_url(found: re.Match[str]) -> bool:
    """Return whether what was found is part of a URL."""
    before = found.string[max(0, found.start() - _LONGEST_USER) : found.start()]
    scheme = before.rfind("://")
    return scheme >= 0 and _BLANK.search(before, scheme) is None
