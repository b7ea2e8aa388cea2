#!/usr/bin/env python3
"""Checks the rooms of the sources: which layer may include which, how many files a folder has, its namespace."""

import collections
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Layer -> the layers that its files may include besides their own, lowest first; HACKING.md lists them in this order.
_FORMULAS = ["uper/core", "uper/base"]
_ENGINE = ["uper/nn", "uper/envs", "uper/replay", "uper/checkpoint", "uper/metrics", *_FORMULAS]
_TRAIN = ["uper/engine", *_ENGINE]
_EXPERIMENTS = ["uper/train", "uper/tabular", "uper/stats", *_TRAIN]
ALLOWED = {
    "uper/base": [],
    "uper/core": ["uper/base"],
    "uper/replay": _FORMULAS,
    "uper/envs": _FORMULAS,
    "uper/tabular": ["uper/replay", *_FORMULAS],
    "uper/stats": ["uper/base"],
    "uper/checkpoint": ["uper/base"],
    "uper/metrics": ["uper/checkpoint", "uper/base"],
    "uper/nn": ["uper/replay", *_FORMULAS],
    "uper/engine": _ENGINE,
    "uper/train": _TRAIN,
    "experiments": _EXPERIMENTS,
    "uper/cli": ["experiments", *_EXPERIMENTS],
    "apps/uper": ["uper/cli", "uper/base"],
    # Programs of users, who include the installed headers and their own.
    "examples/own_loop": ["uper/replay", *_FORMULAS],
    "examples/own_environment": ["uper/cli", "uper/envs", "uper/base"],
}
# Layers that must build with the compiler alone.
NO_THIRD_PARTY = ["uper/base", "uper/core", "uper/replay", "uper/envs", "uper/tabular", "uper/stats"]
# The one file that knows the Atari emulator.
MAY_INCLUDE = {"uper/envs/atari/ale_emulator.cc": "ale/"}
# Most files of its own that a folder may have.
MAX_FILES = 35
# Folder -> the namespace of its files. A folder joins this table once all of its files have moved.
NAMESPACES = {
    "uper/checkpoint": "uper::checkpoint",
    "uper/nn/cpu": "uper::cpu",
    "uper/nn/cuda": "uper::cuda",
    "uper/engine/cuda": "uper::cuda",
    "uper/cli": "uper::cli",
    "experiments": "uper::experiments",
}
# These files are in the namespace uper itself, because users call them.
PUBLIC = ["uper/cli/main.h", "uper/cli/main.cc"]
# A header that is slow to compile has one file that includes it.
ONE_FILE_ONLY = ["CLI/CLI.hpp", "rapidcheck.h", "rapidcheck/gtest.h", "toml++/toml.h"]

NAMESPACE = re.compile(r"^namespace (uper[\w:]*)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    return next((layer for layer in ALLOWED if path.startswith(layer + "/")), None)


def is_for_tests(name):
    """A test, or a header that only tests may include."""
    return name.endswith(("_test.cc", "_for_tests.h", "_for_tests.cuh"))


def namespace_problems(file, name):
    for folder, wanted in NAMESPACES.items():
        if name.startswith(folder + "/") and name not in PUBLIC:
            for found in NAMESPACE.findall(file.read_text()):
                if found != wanted and not found.startswith(wanted + "::"):
                    yield f"{name}: namespace {found} in a folder of {wanted}"


def folder_problems(names):
    """Folders with too many files; the names are relative to their roots."""
    counts = collections.Counter(name.rpartition("/")[0] for name in names)
    for folder, count in sorted(counts.items()):
        if count > MAX_FILES:
            yield f"{folder}: {count} files of its own; at most {MAX_FILES}: make rooms of it"


def includes_of(file):
    for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == "<", match.group(2)


def problems_in(file, name):
    layer = layer_of(name)
    if layer is None:
        yield f"{name}: belongs to no layer of tools/check_layers.py"
        return
    is_test = is_for_tests(name)
    in_cuda = "/cuda/" in name
    if name.endswith((".cu", ".cuh")) and not in_cuda:
        yield f"{name}: CUDA belongs into a folder cuda/"
    for number, system, target in includes_of(file):
        where = f"{name}:{number}"
        if not system and is_for_tests(target) and not is_test:
            yield f'{where}: only tests may include "{target}"'
        if not system:
            target_layer = layer_of(target)
            if layer.startswith("examples/") and (file.parent / target).exists():
                continue
            if target_layer is None:
                yield f'{where}: "{target}" is not a path from the root of the sources'
            elif target_layer != layer and target_layer not in ALLOWED[layer]:
                yield f"{where}: {layer} must not include {target_layer} ({target})"
        elif target.startswith("cuda") and not in_cuda:
            yield f"{where}: CUDA belongs into a folder cuda/ ({target})"
        elif layer in NO_THIRD_PARTY and "/" in target:
            known = target.startswith(("sys/", "ext/pb_ds/")) or (is_test and target.startswith("gtest/"))
            known = known or target.startswith(MAY_INCLUDE.get(name, "/"))
            if not known:
                yield f"{where}: {layer} must build without third-party libraries ({target})"


def main():
    problems = []
    users = {header: [] for header in ONE_FILE_ONLY}
    files = [(path, path.relative_to(ROOT / "src").as_posix()) for path in (ROOT / "src").rglob("*")]
    for folder in ("experiments", "apps", "examples"):
        files += [(path, path.relative_to(ROOT).as_posix()) for path in (ROOT / folder).rglob("*")]
    sources = [(path, name) for path, name in files if path.suffix in (".h", ".cc", ".cu", ".cuh")]
    for path, name in sorted(sources, key=lambda pair: pair[1]):
        problems += problems_in(path, name)
        problems += namespace_problems(path, name)
        for _, system, target in includes_of(path):
            if system and target in users:
                users[target].append(name)
    problems += folder_problems([name for path, name in files if path.is_file()])
    for header, names in users.items():
        if len(names) > 1:
            problems.append(f"<{header}> is slow to compile; more than one file includes it: {names}")
    for problem in problems:
        print(problem)
    print(f"layers: {len(sources)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
