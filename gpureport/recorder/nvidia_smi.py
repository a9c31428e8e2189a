"""What the installed nvidia-smi can record: its driver's fields, and the activity in dmon."""

import re
import shutil
import subprocess
from collections.abc import Sequence

from gpureport.errors import SourceError
from gpureport.recording_advice import COUNTER_FIELDS, GPU_FIELDS, IDENTITY_FIELDS
from gpureport.regular_files import code_system_error

_NAME, _CHECK, _INSTALL = (
    "nvidia-smi",
    "check the driver, or give --host-only",
    "install the driver, or give --host-only",
)
_SLOW = 20.0
"""Seconds after which nvidia-smi is taken to hang (pragmatic): loading a driver of many GPUs takes several."""
_ALIASES = {"clocks_event_reasons.active": "clocks_throttle_reasons.active"}
"""What drivers before R530 call a field."""
_REFUSED = re.compile(r'Field "([^"]+)" is not a valid field to query')
_QUOTED = re.compile(r'"([a-z][\w.]*)"', re.IGNORECASE)
_GPM = ("--gpm-metrics", "2,3,5,10")
"""Activity of the multiprocessors, their occupancy, of the tensor cores and of memory."""


def find_nvidia_smi() -> str:
    """Return the path of nvidia-smi, or raise a `SourceError`."""
    if (program := shutil.which(_NAME)) is None:
        raise SourceError(_NAME, "not found on this machine", _INSTALL, code="no_nvidia_smi")
    return program


def build_query_command(program: str, interval: float) -> list[str]:
    """Return the command that prints every GPU at an interval: the fields that the driver knows and answers.

    Raise a `SourceError` when the driver answers no query, with what it says.
    """
    known = set(_QUOTED.findall(_run([program, "--help-query-gpu"])))
    wanted = [_ALIASES.get(name, name) if name not in known else name for name in (*GPU_FIELDS, *COUNTER_FIELDS)]
    fields, refused, answer = [name for name in wanted if name in known or name in IDENTITY_FIELDS], {""}, ""
    while refused:
        fields = [name for name in fields if name not in refused]
        answer = _run([program, f"--query-gpu={','.join(fields)}", "--format=csv"])
        refused = set(_REFUSED.findall(answer)) & set(fields)
    if not answer.startswith("timestamp,"):
        said = next(filter(None, map(str.strip, answer.splitlines())), "it printed nothing")
        raise SourceError(_NAME, said.rstrip("."), _CHECK, code="driver_failed")
    loop = ["-l", f"{interval:.0f}"] if interval == int(interval) else ["-lms", f"{interval * 1000:.0f}"]
    return [program, f"--query-gpu={','.join(fields)}", "--format=csv", *loop]


def build_dmon_command(program: str, interval: float) -> list[str] | None:
    """Return the command that prints PCIe traffic, and GPU activity if counted; None without dmon."""
    usage = _run([program, "dmon", "-h"])
    if "dmon" not in usage:
        return None
    counted = _GPM if _GPM[0] in usage else ()
    # dmon takes whole seconds
    return [program, "dmon", "-s", "pt", "-o", "DT", "-d", str(max(1, round(interval))), *counted]


def _run(words: Sequence[str]) -> str:
    """Return what a command prints; one that does not end is a `SourceError`."""
    try:
        done = subprocess.run(  # noqa: S603 - nvidia-smi as found on the path
            words, stdin=subprocess.DEVNULL, capture_output=True, errors="replace", timeout=_SLOW, check=False
        )
    except subprocess.TimeoutExpired as error:
        what = f"no answer to {' '.join(words[1:])[:40]} in {_SLOW:.0f} s"
        raise SourceError(_NAME, what, _CHECK, code="no_answer") from error
    except OSError as error:
        code = code_system_error(error, "cannot_run")
        raise SourceError(_NAME, error.strerror or "cannot be run", _INSTALL, code=code) from error
    return done.stdout + done.stderr
