"""The command `uper`: the program that comes with the package, where it could be built."""

from __future__ import annotations

import os
import sys

PROGRAM = os.path.join(os.path.dirname(__file__), "_bin", "uper")


def why_missing() -> str | None:
    """Why the program is not there; None if it is."""
    from uper import _core
    if os.path.exists(PROGRAM):
        return None
    return (f"this build of uper has no program, because these packages were missing: {_core.missing_packages}. On "
            "Debian or Ubuntu install libcli11-dev libfmt-dev nlohmann-json3-dev libhwy-dev libtomlplusplus-dev "
            "libzstd-dev libxxhash-dev zlib1g-dev pkg-config, then install uper again from its sources")


def main() -> int:
    """Hands the arguments to the program. Without a program only `doctor` and `--version` work."""
    arguments = sys.argv[1:]
    missing = why_missing()
    if missing is None:
        sys.stdout.flush()
        os.execv(PROGRAM, [PROGRAM, *arguments])
    if arguments == ["doctor"]:
        from uper._doctor import doctor
        for name, value in doctor().items():
            print(f"{name:24} {value}")
        return 0
    if arguments in (["--version"], ["version"]):
        import uper
        print(f"uper {uper.__version__} (Python package without the program)")
        return 0
    print(f"uper: {missing}", file=sys.stderr)
    return 3
