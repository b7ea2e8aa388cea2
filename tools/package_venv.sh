#!/usr/bin/env bash
# Installs the Python package from this checkout into .venv-package, beside the libraries that it has
# adapters for. Idempotent; says what it does.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv-package
stamp=$venv/.requirements.sha256
wanted=$(sha256sum requirements-python.txt)
if [ ! -x $venv/bin/python ] || [ "$(cat $stamp 2>/dev/null)" != "$wanted" ]; then
  echo "setup: libraries for the tests of the Python package into $venv (about 6 GB)"
  [ -x $venv/bin/python ] || python3 -m venv $venv
  $venv/bin/python -m pip install -q --disable-pip-version-check -r requirements-python.txt
  echo "$wanted" >$stamp
fi
echo "setup: the Python package into $venv"
$venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --force-reinstall .
