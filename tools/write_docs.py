#!/usr/bin/env python3
"""Writes the tables of docs/ that the program generates, or checks that they are up to date.

A table stands between `<!-- uper list WHAT -->` and `<!-- end -->`.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = re.compile(r"(<!-- uper list (\w+) -->\n)(.*?)(<!-- end -->\n)", re.S)


def generated(program, what):
    return subprocess.run([program, "list", what, "--markdown"], check=True, capture_output=True, text=True).stdout


def updated(program, text):
    return TABLE.sub(lambda match: match[1] + generated(program, match[2]) + match[4], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a table is out of date")
    parser.add_argument("--program", default=str(ROOT / "build" / "uper"))
    arguments = parser.parse_args()
    stale = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        new = updated(arguments.program, text)
        if new != text:
            stale.append(str(page.relative_to(ROOT)))
            if not arguments.check:
                page.write_text(new)
    for name in stale:
        print(f"{name}: {'out of date; `make docs` writes it' if arguments.check else 'written'}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
