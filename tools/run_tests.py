#!/usr/bin/env python3
"""Runs every check of the project, stage by stage, and ends with one summary."""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOBS = str(len(os.sched_getaffinity(0)))
SOURCES = "git ls-files -co --exclude-standard '*.h' '*.cc' '*.cu' '*.cuh'"


def ctest(preset, *arguments):
    return ["ctest", "--test-dir", f"build/{preset}", "-j", JOBS, "--output-on-failure",
            "--no-tests=error", *arguments]


def build(preset, *targets):
    configure = ["cmake", "--preset", preset, "--log-level=WARNING", "-DUPER_TESTS=ON"]
    make = ["cmake", "--build", "--preset", preset]
    return [configure, make + (["--target", *targets] if targets else [])]


def stages(soak):
    """(name, commands); the last command's output is searched for counts of tests."""
    yield "layers", [["python", "tools/check_layers.py"]]
    yield "words", [["python", "tools/check_words.py"]]
    yield "format", [["bash", "-c", f"{SOURCES} | xargs clang-format --dry-run --Werror"]]
    yield "release", [*build("release"), ["ln", "-sfn", "release/uper", "build/uper"], ctest("release")]
    yield "asan-ubsan", [*build("asan-ubsan", "tests"), ctest("asan-ubsan")]
    yield "tsan", [*build("tsan", "base_test", "replay_test"), ctest("tsan", "-R", "Concurrent")]
    if soak:  # most of the library is built for it
        yield "tsan, rounds", [*build("tsan", "train_test"), ctest("tsan", "-R", "train.(Actors|TrainerResume)Test")]
    yield "package", [["tools/package_venv.sh"],
                      [".venv-package/bin/python", "-m", "pytest", "-q", "-rs", "-n", JOBS, "--dist", "loadfile",
                       "-p", "no:cacheprovider", "tests/python"]]
    yield "python", [["python", "-m", "pytest", "-q", "-rs", "-n", JOBS, "--dist", "loadfile", "--ignore", "tests/python", "tests",
                      *([] if soak else ["-m", "not soak"])]]


def counts(output):
    """(passed, failed) from the closing lines of ctest or pytest; None when there are none."""
    match = re.search(r"(\d+)% tests passed, (\d+) tests failed out of (\d+)", output)
    if match:
        failed, total = int(match.group(2)), int(match.group(3))
        return total - failed, failed
    passed = re.search(r"(\d+) passed", output)
    failed = re.search(r"(\d+) failed", output)
    errors = re.search(r"(\d+) errors?\b", output)
    if not (passed or failed or errors):
        return None
    number = lambda found: int(found.group(1)) if found else 0
    return number(passed), number(failed) + number(errors)


def run(command):
    """Runs one command, showing its output as it comes; (exit status, output)."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace")
    lines = []
    for line in process.stdout:
        lines.append(line)
        sys.stdout.write(line)
        sys.stdout.flush()
    return process.wait(), "".join(lines)


def run_stage(name, commands):
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    status, output = 0, ""
    for command in commands:
        status, output = run(command)
        if status != 0:
            break
    passed, failed = counts(output) or ((1, 0) if status == 0 else (0, 1))
    if status != 0:
        failed = max(failed, 1)
    return passed, failed, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--soak", action="store_true", help="with the long campaigns")
    arguments = parser.parse_args()
    results = [(name, *run_stage(name, commands)) for name, commands in stages(arguments.soak)]
    print("\n=== summary")
    for name, passed, failed, seconds in results:
        print(f"{name:12} {passed:5} passed {failed:5} failed {seconds:7.0f} s")
    failed = sum(result[2] for result in results)
    print(f"{sum(result[1] for result in results)} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
