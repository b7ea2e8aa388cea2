"""The tables in docs/ that the program generates, and lists that must name what the program has."""

import subprocess
import sys

import pytest
from conftest import PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "python"))

WRITE_DOCS = ROOT / "tools" / "write_docs.py"


def test_generated_tables_are_up_to_date():
    result = subprocess.run([sys.executable, WRITE_DOCS, "--check", "--program", PROGRAM], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("what", ["keys", "columns", "priorities"])
def test_every_generated_table_is_in_a_page(what):
    assert any(f"<!-- uper list {what} -->" in page.read_text() for page in (ROOT / "docs").rglob("*.md"))


def test_a_table_holds_every_name_of_its_list(uper):
    for what in ("keys", "columns", "priorities"):
        table = uper("list", what, "--markdown").stdout
        for name in uper("list", what).stdout.split():
            assert f"| `{name}` |" in table, name


def test_only_tables_can_be_printed_as_markdown(uper):
    result = uper("list", "agents", "--markdown")
    assert result.returncode == 2 and "--markdown" in result.stderr


def test_every_priority_has_a_label_and_a_color(uper):
    from uper_plots import style

    assert list(style.SCHEMES) == uper("list", "priorities").stdout.split()
