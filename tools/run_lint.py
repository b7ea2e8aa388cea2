#!/usr/bin/env python3
"""clang-tidy over everything that the preset `lint` compiles, with one process per core; exits with 1 if it finds
anything. The preset joins the files of a target, so that clang-tidy reads the headers once for eight files."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# By that word in the path Clang's static analyzer knows that joined files are no headers.
BUILD = ROOT / "build" / "lint-UnifiedSource"
# The joined files are headers to clang-tidy.
OPTIONS = ["-p", str(BUILD), "--quiet", r"--header-filter=(src/uper|experiments|apps|examples|tests)/.*\.(h|cc)$"]
# Tests need not be fast.
TEST_OPTIONS = ["--checks=-performance-*"]


def lint(file):
    is_test = file.endswith("_test.cc") or "_test.dir/" in file
    options = OPTIONS + (TEST_OPTIONS if is_test else [])
    result = subprocess.run(["clang-tidy", *options, file], capture_output=True, text=True)
    sys.stdout.write(result.stdout)
    if result.returncode != 0 and not result.stdout:
        sys.stdout.write(result.stderr)
    sys.stdout.flush()
    return result.returncode == 0


def main():
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    files = sorted({command["file"] for command in commands if not command["file"].endswith("_table.cc")})
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        clean = list(pool.map(lint, files))
    print(f"{len(files)} units, {clean.count(False)} with findings")
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
