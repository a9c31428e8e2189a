"""List packages with their licences, and end with 1 where a licence is none of those allowed here.

Reads what `pip-licenses --format json` wrote, and prints a table in Markdown.
"""

import json
import re
import sys
from pathlib import Path

ALLOWED = {
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MIT-CMU",
    "MPL-2.0",  # asks for the source of its own files alone, which are used as they are
    "PSF-2.0",
    "Zlib",
    # as metadata without an SPDX expression name them
    "3-Clause BSD License",
    "Apache License, Version 2.0",
    "Apache Software License",
    "BSD",
    "BSD License",
    "ISC License (ISCL)",
    "MIT License",
    "Mozilla Public License 2.0 (MPL 2.0)",
    "Python Software Foundation License",
}
IN_THEIR_FILES = {"huey": "MIT", "skops": "MIT"}
"""Packages whose metadata name no licence, and what the file LICENSE that they install says."""
UNKNOWN = "UNKNOWN"
"""What pip-licenses says where metadata name none."""


def is_allowed(licence: str) -> bool:
    """Return whether all licences of an expression, or all of one side of an OR, are allowed."""
    sides = [licence] if "(" in licence and " OR " in licence else licence.split(" OR ")
    return any(all(part in ALLOWED for part in re.split(r" AND | OR |; ", side)) for side in sides)


def read_licences(path: Path) -> dict[str, str]:
    """Return the licence of each package, from its files where its metadata name none."""
    packages = json.loads(path.read_text(encoding="utf-8"))
    licences: dict[str, str] = {}
    for package in packages:
        name, licence = package["Name"], package["License"]
        licences[f"{name} {package['Version']}"] = IN_THEIR_FILES.get(name, licence) if licence == UNKNOWN else licence
    return licences


def main() -> int:
    """Print the table; return 1 and name the packages where a licence is not allowed."""
    licences = read_licences(Path(sys.argv[1]))
    print("| package | licence |\n| --- | --- |")
    for package, licence in sorted(licences.items(), key=lambda pair: pair[0].lower()):
        print(f"| {package} | {licence} |")
    refused = [f"{package}: {licence}" for package, licence in licences.items() if not is_allowed(licence)]
    for line in refused:
        print(f"licences: {line} is none of those that .ci/licences.py allows", file=sys.stderr)
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
