#!/usr/bin/env bash
# Builds the Arcade Learning Environment (the Atari emulator) as a static library into .cache/ale-0.12.1
# of the checkout, with the games that its source archive holds. Takes about a minute on two cores.
# Idempotent; says what it does; does nothing when everything is there.
#   .cache/ale-0.12.1/{include/ale, lib/libale.a, roms/*.bin}
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.12.1
sha256=c503d574c5983e1063b451201ccb779d935919c0f6bf116fb0f4f8aa4c86d249
archive=ale_py-$version.tar.gz
# ALE's own build adds -flto; without it the emulator is faster here (docs/performance.md). No -march:
# the library runs on every x86-64.
flags="-O3 -DNDEBUG -w"
root=.cache/ale-$version
stamp=$root/built
recipe=$(printf '%s %s %s' "$sha256" "$flags" "$(c++ -dumpfullversion -dumpversion 2>/dev/null)")

if [ "$(cat "$stamp" 2>/dev/null)" = "$recipe" ] && [ -f "$root/lib/libale.a" ]; then exit 0; fi
if [ ! -x .venv/bin/python ]; then
  echo "setup: .venv is missing; run tools/setup.sh first" >&2
  exit 1
fi

mkdir -p "$root"
work=$(mktemp -d "$root/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

archive_is_right() { echo "$sha256  $root/$archive" | sha256sum --check --status 2>/dev/null; }

if ! archive_is_right; then
  echo "setup: downloading the sources of ALE $version"
  # The archive's own metadata needs its build tool to be there.
  .venv/bin/python -m pip download -q --disable-pip-version-check --no-binary ale-py --no-deps \
    --no-build-isolation --dest "$work" "ale-py==$version"
  mv "$work/$archive" "$root/$archive"
  if ! archive_is_right; then
    echo "setup: $root/$archive has another SHA-256 than $sha256: not used, removed" >&2
    rm -f "$root/$archive"
    exit 1
  fi
fi

echo "setup: building ALE $version (about a minute)"
tar -xzf "$root/$archive" -C "$work"
source=$work/ale_py-$version
export PATH="$PWD/.venv/bin:$PATH"
# RelWithDebInfo is the one build type for which ALE does not switch -flto on.
if ! cmake -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="$flags" -DBUILD_CPP_LIB=ON -DBUILD_PYTHON_LIB=OFF \
    >"$root/build.log" 2>&1 ||
   ! cmake --build "$work/build" >>"$root/build.log" 2>&1; then
  tail -n 20 "$root/build.log" >&2
  echo "setup: ALE did not build (all of it: $root/build.log)" >&2
  exit 1
fi

rm -rf "$root/include" "$root/lib" "$root/roms"
mkdir -p "$root/include" "$root/lib" "$root/roms"
cp "$work/build/src/ale/libale.a" "$root/lib/"
cp "$source"/src/ale/python/roms/*.bin "$root/roms/"
(cd "$source/src" && find ale -name '*.h' -o -name '*.hpp' -o -name '*.hxx') |
  while read -r header; do install -D -m 644 "$source/src/$header" "$root/include/$header"; done
cp "$work/build/src/ale/version.hpp" "$root/include/"
cp "$source/LICENSE.md" "$root/"
printf '%s' "$recipe" >"$stamp"
echo "setup: ALE $version is in $root"
