"""Say in a line what pip-audit found, and end with 1 where a package has a known vulnerability.

Reads what `pip-audit --format json` wrote. Where its service has no answer, pip-audit may write nothing, or skip every
package and still call the result clean: then nothing is known, which this says.
"""

import json
import sys
from pathlib import Path

NOT_AUDITED = (
    "not audited: the service of pip-audit cannot be reached from here, so nothing is known of vulnerabilities"
)


def main() -> int:
    """Print the line, and one for each vulnerability."""
    path = Path(sys.argv[1])
    packages = json.loads(path.read_text(encoding="utf-8"))["dependencies"] if path.exists() else []
    audited = [package for package in packages if "vulns" in package]
    if not audited:
        print(NOT_AUDITED)
        return 0
    found = [(package, fault) for package in audited for fault in package["vulns"]]
    for package, fault in found:
        mended = ", ".join(fault["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {fault['id']}, mended in {mended}")
    noun = "vulnerability" if len(found) == 1 else "vulnerabilities"
    print(f"{len(audited)} of {len(packages)} packages audited, {len(found)} known {noun}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
