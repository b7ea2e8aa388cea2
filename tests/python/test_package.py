"""The package as it is installed: imports, types, errors, the command, examples in documents."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import uper

FOLDER = Path(uper.__file__).parent
DOCS = Path(__file__).resolve().parents[2] / "docs" / "python"


def python(code, folder=None):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder)


def test_import_loads_numpy_and_little_else():
    """Importing is fast because nothing slow is imported: speed itself is `uper bench`'s business."""
    result = python("import numpy, sys; before = set(sys.modules); import uper; print(*sorted(set(sys.modules) - before))")
    names = result.stdout.split()
    assert "uper" in names
    assert {"importlib.metadata", "email", "torch", "jax", "gymnasium", "stable_baselines3"}.isdisjoint(names)
    assert len([name for name in names if not name.startswith("uper")]) < 12, names


def test_numpy_is_the_only_requirement():
    from importlib import metadata
    needed = [text for text in metadata.requires("uper") if "extra ==" not in text]
    assert len(needed) == 1 and needed[0].startswith("numpy")
    assert metadata.version("uper") == uper.__version__


def test_types_are_there():
    assert (FOLDER / "py.typed").exists() and "class Memory" in (FOLDER / "_core.pyi").read_text()


def test_errors_are_one_family():
    from uper import errors
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), uper.Error)
    for ours, builtin in [(uper.UsageError, ValueError), (uper.MissingDataError, FileNotFoundError),
                          (uper.OutOfMemoryError, MemoryError), (uper.DiskError, OSError)]:
        assert issubclass(ours, builtin)


def test_doctor_and_the_command():
    found = uper.doctor()
    assert found["uper"] == uper.__version__ and "uper[torch]" in found
    command = shutil.which("uper", path=Path(sys.executable).parent)
    version = subprocess.run([command, "--version"], capture_output=True, text=True)
    assert version.returncode == 0 and uper.__version__ in version.stdout
    doctor = subprocess.run([command, "doctor"], capture_output=True, text=True)
    assert doctor.returncode == 0 and doctor.stdout
    if not (FOLDER / "_bin" / "uper").exists():
        train = subprocess.run([command, "train"], capture_output=True, text=True)
        assert train.returncode == 3 and "libhwy-dev" in train.stderr


@pytest.mark.parametrize("extra, module", [("torch", "torch"), ("jax", "jax"), ("sb3", "stable_baselines3"),
                                           ("torchrl", "torchrl"), ("tianshou", "tianshou")])
def test_an_adapter_without_its_library_names_the_extra(extra, module):
    if importlib.util.find_spec(f"uper.{extra}") is None:
        pytest.skip(f"uper.{extra} is not part of this package")
    block = f"import sys; sys.modules[{module!r}] = None; import uper.{extra}"
    result = python(block)
    assert result.returncode != 0 and f"pip install 'uper[{extra}]'" in result.stderr, result.stderr


def blocks(path):
    """The Python blocks of a page, joined: later ones build on earlier ones."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE))


@pytest.mark.skipif(not DOCS.exists(), reason="the documents are not here")
def test_the_blocks_of_the_first_page_run():
    pytest.importorskip("gymnasium")
    result = python(blocks(DOCS / "README.md"))
    assert result.returncode == 0, result.stderr


def test_no_call_ends_the_process(tmp_path):
    """Wrong kinds of arguments to the inner module, which users do not call: exceptions all the same."""
    result = python("""
import itertools, numpy as np
from uper import _core
import uper
memory = uper.Replay(5, {"a": ((), "f4")})
memory.add(a=[1, 2, 3])
index = uper.PriorityIndex(5)
index.add(3)
odd = [None, 1, -1, 2**70, "x", b"y", (), [], {}, np.zeros(3), np.zeros((2, 2)), np.array("a"), object()]
calls = 0
for thing in (memory._core, index._core, _core.Memory, _core.RingIndex):
    for name in dir(thing):
        if name.startswith("_") or not callable(getattr(thing, name)):
            continue
        for count in range(4):
            for arguments in itertools.islice(itertools.product(odd, repeat=count), 400):
                calls += 1
                try:
                    getattr(thing, name)(*arguments)
                except Exception:
                    pass
print(calls)
""", tmp_path)
    assert result.returncode == 0 and int(result.stdout) > 5000, (result.returncode, result.stderr[-500:])
