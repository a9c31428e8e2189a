"""What a folder holds, and what a refusal says."""

from pathlib import Path

from tests.cli.program import Program


def state(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return the content and time of every file below a folder."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def refuse(gpureport: Program, root: Path, *words: str) -> str:
    """Return the code with which `publish` is refused, which changes no file and prints one line."""
    before = state(root)
    done = gpureport("publish", *words)
    assert (done.out, done.err.count("\n"), done.code in {2, 3}) == ("", 1, True), (words, done)
    assert state(root) == before, words
    told = gpureport("--debug", "publish", *words).err.splitlines()
    return next((line.removeprefix("code: ") for line in told if line.startswith("code: ")), "")
