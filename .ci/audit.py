"""Say in a line what pip-audit found; end with 1 where a package has a known vulnerability, or pip-audit failed.

Reads what `pip-audit --format json` wrote, and its log. Where its service has no answer, pip-audit may write nothing,
or skip every package and still call the result clean: then nothing is known, which this says, and a release goes on.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

_UNREACHABLE = re.compile(r"ConnectionError|ProxyError|Timeout|may be blocking this service")
"""What the last line of the log names where the service cannot be reached."""


def main() -> int:
    """Print the line, and one for each vulnerability."""
    result, log = map(Path, sys.argv[1:])
    try:
        packages: list[dict[str, Any]] = json.loads(result.read_text(encoding="utf-8"))["dependencies"]
    except (OSError, ValueError, LookupError):
        packages = []
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        return _say_not_audited(packages, log)
    found = [(package, fault) for package in audited for fault in package["vulns"]]
    for package, fault in found:
        mended = ", ".join(fault["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {fault['id']}, mended in {mended}")
    noun = "vulnerability" if len(found) == 1 else "vulnerabilities"
    print(f"{len(audited)} of {len(packages)} packages audited, {len(found)} known {noun}")
    return bool(found)


def _say_not_audited(packages: list[dict[str, Any]], log: Path) -> int:
    """Say why nothing is known of vulnerabilities; return 1 unless the service was out of reach."""
    if packages:
        print(f"not audited: every package was skipped, such as {packages[0].get('skip_reason', packages[0])}")
        return 0
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "pip-audit wrote nothing")
    print(f"not audited: {last}")
    return 0 if _UNREACHABLE.search(last) else 1


if __name__ == "__main__":
    sys.exit(main())
