"""Which framework a job runs, as its params and tags name it."""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

from gpureport.analysis.job.job_params import OFF


class Framework(StrEnum):
    """A framework whose input pipeline and settings the advice knows."""

    PYTORCH = "PyTorch"
    TENSORFLOW = "TensorFlow"
    JAX = "JAX"


_WORDS = {
    "torch": Framework.PYTORCH,
    "pytorch": Framework.PYTORCH,
    "torchvision": Framework.PYTORCH,
    "lightning": Framework.PYTORCH,
    "tensorflow": Framework.TENSORFLOW,
    "jax": Framework.JAX,
    "flax": Framework.JAX,
}
"""Words that name a framework or a library of one alone; Keras runs on all three."""
_VALUE_WORDS = {"tf": Framework.TENSORFLOW}
"""Words that name a framework as the value of a param alone: `tf_ratio` may be teacher forcing."""
_FRAMEWORK_PARAMS = {"framework", "frameworks", "library", "flavor", "flavors", "autologging", "backend"}
"""Last words of the names of params whose value is a framework."""


def find_framework(params: Iterable[tuple[str, str]]) -> Framework | None:
    """Return the framework that params and tags name; None if they name none, or several.

    A name such as `torch_compile` or `tensorflow_version` counts unless its value is off, and so does the value of a
    param called `framework`, `backend` or the like.
    """
    named = {found for name, value in params for found in _read_param(name, value)}
    return named.pop() if len(named) == 1 else None


def _read_param(name: str, value: str) -> Iterator[Framework]:
    words = _split_words(name)
    if value.strip().lower() not in OFF:
        yield from (_WORDS[word] for word in words if word in _WORDS)
    if words and words[-1] in _FRAMEWORK_PARAMS:
        known = _WORDS | _VALUE_WORDS
        yield from (known[word] for word in _split_words(value) if word in known)


def _split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, digits included: `tf32` is no `tf`."""
    return re.findall(r"[a-z0-9]+", text.lower())
