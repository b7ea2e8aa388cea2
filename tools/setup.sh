#!/usr/bin/env bash
# Installs what is missing: system packages (apt, as root or through sudo), a private .venv and the
# Atari emulator in .cache/. Idempotent; says what it does; does nothing when everything is there.
#   --without-atari   leave the emulator as it is (`make demo`)
#   --soak            also what only the long tests need, as far as the system has it (`make soak`)
set -euo pipefail
cd "$(dirname "$0")/.."

# Names that exist in Debian 12 and Ubuntu 24.04 alike.
packages=(
  build-essential git pkg-config python3 python3-venv
  libcli11-dev libfmt-dev nlohmann-json3-dev
  libhwy-dev libtomlplusplus-dev libzstd-dev libxxhash-dev zlib1g-dev
  libgtest-dev
)

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}

install_packages() {
  local missing
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "setup: this system has no apt. Install the equivalents of: ${packages[*]}" >&2
    echo "setup: (going on; the build will tell what is missing)" >&2
    return
  fi
  mapfile -t missing < <(missing_packages)
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null && [ ! -t 0 ]; then
      echo "setup: system packages are missing and this user cannot install them. Run:" >&2
      echo "    sudo apt-get install -y ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Tests of what is not there are skipped.
install_soak_packages() {
  local package
  for package in ffmpeg chromium slurm-wlm munge; do
    packages=("$package")
    (install_packages) || echo "setup: $package cannot be installed: its tests are skipped" >&2
  done
}

install_python_packages() {
  local wanted stamp=.venv/.requirements.sha256
  wanted=$(sha256sum requirements.txt requirements-no-deps.txt)
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  echo "setup: Python packages of requirements.txt into .venv"
  [ -x .venv/bin/python ] || python3 -m venv .venv
  .venv/bin/python -m pip install -q --disable-pip-version-check -r requirements.txt
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps -r requirements-no-deps.txt
  echo "$wanted" >"$stamp"
}

install_packages
install_python_packages
[ "${1:-}" != --soak ] || install_soak_packages
[ "${1:-}" = --without-atari ] || tools/setup_ale.sh
