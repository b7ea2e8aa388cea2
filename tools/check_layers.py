#!/usr/bin/env python3
"""Checks the #include lines: a layer may include only itself and the layers below it."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Layer -> what its files may include besides themselves (design: lowest first).
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
# A header that is slow to compile has one file that includes it.
ONE_FILE_ONLY = ["CLI/CLI.hpp", "rapidcheck.h", "rapidcheck/gtest.h", "toml++/toml.h"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layer_of(path):
    return next((layer for layer in ALLOWED if path.startswith(layer + "/")), None)


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
    is_test = name.endswith(("_test.cc", "_for_tests.h"))
    in_cuda = "/cuda/" in name
    if name.endswith((".cu", ".cuh")) and not in_cuda:
        yield f"{name}: CUDA belongs into a folder cuda/"
    for number, system, target in includes_of(file):
        where = f"{name}:{number}"
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
        for _, system, target in includes_of(path):
            if system and target in users:
                users[target].append(name)
    for header, names in users.items():
        if len(names) > 1:
            problems.append(f"<{header}> is slow to compile; more than one file includes it: {names}")
    for problem in problems:
        print(problem)
    print(f"layers: {len(sources)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
