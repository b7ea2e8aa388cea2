"""The checks of layers and words, and the scripts behind docs/results.md on made-up runs whose answer is known."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402
import check_words  # noqa: E402


def write_run(folder, environments, returns, learning_rate=1e-4, agent="dqn", episode_frames=0):
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'environments = {environments}\nseed = {folder.name[-1]}\n[agent]\nname = "{agent}"\n'
        f'[environment]\nname = "minatar/breakout"\n[optimizer]\nlearning_rate = {learning_rate}\n')
    rows = [f"{1000 * (i + 1)},{50 * (i + 1)},{value},{episode_frames}" for i, value in enumerate(returns)]
    (folder / "metrics.csv").write_text("\n".join(["frames,episodes,train_return,train_episode_frames", *rows]) + "\n")


def run_tool(name, *arguments):
    result = subprocess.run([sys.executable, ROOT / "tools" / name, *map(str, arguments)], capture_output=True,
                            text=True, check=True)
    return result.stdout


def test_modes_are_compared_by_welchs_interval(tmp_path):
    first, second = [2.0, 4.0, 6.0], [5.0, 5.5, 7.5]
    for mode, areas in ((1, first), (16, second)):
        for seed, area in enumerate(areas):
            write_run(tmp_path / f"{mode}-{seed}", mode, [area] * 3)
    row = run_tool("compare_modes.py", tmp_path).splitlines()[2]
    interval = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    half = (interval.high - interval.low) / 2
    assert f"+2.00 ± {half:.2f} | +50.0% ± {half / 4:.1%}" in row
    assert "3 + 3 | 1: 4.00 | 16: 6.00" in row


def test_a_return_belongs_to_the_middle_of_its_episode(tmp_path):
    for environments in (1, 16):
        middle = environments * 100 / 2
        for seed, offset in enumerate([-0.1, 0.1]):
            returns = [max(0, 1000 * (i + 1) - middle - 3000) / 1000 + offset for i in range(10)]
            write_run(tmp_path / f"{environments}-{seed}", environments, returns, episode_frames=100)

    def difference(*more):
        return float(run_tool("compare_modes.py", tmp_path, *more).splitlines()[2].split("|")[6].split("±")[0])

    assert abs(difference()) < 0.02
    assert difference("--ends") < -0.4  # 0.75 in the last seven tenths
    assert difference("--column", "episodes") == 0
    result = subprocess.run([sys.executable, ROOT / "tools" / "compare_modes.py", tmp_path, "--column", "los"],
                            capture_output=True, text=True)
    assert result.returncode == 1 and "no numbers in a column los" in result.stderr


def test_runs_without_another_mode_are_not_compared(tmp_path):
    for seed in (1, 2):
        write_run(tmp_path / f"{seed}", 1, [1.0, 2.0])
    result = subprocess.run([sys.executable, ROOT / "tools" / "compare_modes.py", tmp_path], capture_output=True, text=True)
    assert result.returncode == 1
    assert "needs two values of environments" in result.stderr and "nothing to compare" in result.stderr


def test_the_published_table_tells_step_sizes_apart(tmp_path):
    frames_1m = [7.0] * 1000
    write_run(tmp_path / "plain-1", 1, frames_1m)
    write_run(tmp_path / "chosen-1", 1, [9.0] * 1000, learning_rate=2**-9)
    table = run_tool("minatar_results.py", tmp_path)
    assert "| `dqn` | breakout | 1,000,000 | 7.00 | 7.0 | 9.1 | 0.77 |" in table
    assert "| `dqn, chosen step size` | breakout | 1,000,000 | 9.00 | 9.0 | 9.1 | 0.99 |" in table


def test_training_curves_keep_runs_of_one_seed_apart(tmp_path):
    write_run(tmp_path / "a-1", 1, [1.0, 2.0])
    write_run(tmp_path / "b-1", 16, [3.0, 4.0])
    (tmp_path / "a-1" / "metrics.csv").write_text("frames,episodes,train_return,wall_seconds\n1000,1,2.0,1\n")
    (tmp_path / "b-1" / "metrics.csv").write_text("frames,episodes,train_return,wall_seconds\n1000,1,3.0,1\n")
    table = run_tool("training_curves.py", tmp_path, "--mark", 1000)
    assert "| 1 | 1 | 2.0 |" in table and "| 16 | 1 | 3.0 |" in table


def test_training_curves_average_the_episodes_before_a_mark(tmp_path):
    write_run(tmp_path / "run-1", 1, [])
    rows = ["500,1,2.0,0.25", "1000,4,6.0,0.5", "1500,4,,0.75", "2000,6,9.0,1.0"]  # 1 + 3, then 0 + 2 episodes
    (tmp_path / "run-1" / "metrics.csv").write_text(
        "\n".join(["frames,episodes,train_return,wall_seconds", *rows]) + "\n")
    table = run_tool("training_curves.py", tmp_path, "--mark", 1000, "--image", tmp_path / "curves.png")
    assert "| minatar/breakout | `dqn` | 1 | 1 | 5.0 | 9.0 | 0.00M | 2,000 |" in table
    assert (tmp_path / "curves.png").stat().st_size > 1000


# Part of the pattern's name, a sentence that it must find, a good sentence.
WORDS = [
    ("but for", "All files but for one stay.", "It is not for speed but for safety."),
    ("'a' for per", "It saves one file a command.", "It saves one file per command."),
    ("'a' for per", "It runs once a frame.", "Each update reads a frame."),
    ("'a' for per", "It makes at most one a learner.", "It makes at most one per learner."),
    ("'a' for per", "A file holds one element a key.", "A file has one element per key."),
    ("is said", "If it fails, that is said.", "If it fails, the program prints it."),
    ("what is new", "The GPU takes what is new.", "The GPU takes the new records."),
    ("chain of 'those'", "It keeps those of the runs with those that ended.", "It keeps those of the runs."),
    ("British", "The optimiser of this colour.", "The optimizer of `initialisation` has this color."),
    ("British", "The initialisers are analysed.", "The initializers are analyzed."),
    ("doubled", "It reads the the file.", "It is true that it reads."),
    ("gone", "The growth is copied.", "The append batch is copied."),
    ("'What ...'", "What a save writes.", "What does a save write?"),
    ("'Of ...'", "Of the newest run.", "The name of the newest run."),
    ("over 40 words", "one two " * 21 + "end.", "one two " * 15 + "end. " + "Three four " * 15 + "end."),
]


@pytest.mark.parametrize("pattern, bad, good", WORDS)
def test_words_are_found_and_good_sentences_pass(pattern, bad, good):
    for name, form in (("x.h", "// {}\n"), ("x.py", "# {}\n"), ("x.md", "{}\n")):
        if name == "x.md" and "..." in pattern:
            continue  # openings of comments
        assert any(pattern in hit for _, hit, _ in check_words.hits_in(name, form.format(bad))), name
        assert not list(check_words.hits_in(name, form.format(good))), name


def test_words_name_the_line():
    text = "int color = 1;\n\n// Good words\n// and a grey one.\n"
    assert [line for line, _, _ in check_words.hits_in("x.cc", text)] == [4]


@pytest.mark.parametrize("name, line", [
    ("x.cc", "int colour = 1;"), ("x.cc", "void MaximumOfGrey();  // gray"), ("x.cc", 'Print("the optimiser");'),
    ("x.cc", "constexpr int kNormalisedScore = 1;"), ("x.cc", 'Check(ok, "one slot a frame");'),
    ("x.cu", "float centre_of_mass = 0;"), ("x.py", "summarise(rows)"), ("x.py", "x = 1  # one element a key"),
    ("x.cmake", "set(a b)  # designated initialisers"), ("x.html", "<p>normalised scores</p>")])
def test_words_are_found_in_code(name, line):
    assert [hit for hit, _, _ in check_words.hits_in(name, f"\n{line}\n")] == [2]


def test_words_that_users_and_results_depend_on_stay():
    for name, line in (("x.cc", 'columns = {"frames", "normalised"};'), ("x.py", "row['normalised']"),
                       ("x.cc", 'RandomStream stream(seed, "initialisation");'), ("x.cc", "ale::ColourPalette& colors;"),
                       ("x.cc", "int cancellation = 0;  // `colour`")):
        assert not list(check_words.hits_in(name, line + "\n")), line


def test_the_table_of_folders_is_that_of_the_layer_check():
    folders = re.findall(r"^\| `([^`]+)` \|", (ROOT / "HACKING.md").read_text(), re.MULTILINE)
    layers = [f"src/{layer}" if layer.startswith("uper/") else layer for layer in check_layers.ALLOWED]
    assert folders == layers


def test_every_path_in_backticks_exists():
    missing = []
    for page in [ROOT / "HACKING.md", ROOT / "CONTRIBUTING.md", ROOT / "README.md"]:
        for path in re.findall(r"`((?:src|experiments|tests|tools|docs|configs|python|examples|apps)/[\w./-]+)`", page.read_text()):
            if not (ROOT / path).exists():
                missing.append(f"{page.name}: {path}")
    assert not missing


def test_folders_headers_for_tests_and_namespaces_are_checked(tmp_path):
    assert list(check_layers.folder_problems([f"uper/x/{i}.cc" for i in range(36)]))
    assert not list(check_layers.folder_problems([f"uper/x/{i}.cc" for i in range(35)]))
    file = tmp_path / "a.cc"
    file.write_text('#include "uper/base/files/files_for_tests.h"\nnamespace uper {\n}\n')
    assert any("only tests" in problem for problem in check_layers.problems_in(file, "uper/base/a.cc"))
    assert not list(check_layers.problems_in(file, "uper/base/a_test.cc"))
    assert list(check_layers.namespace_problems(file, "uper/checkpoint/a.cc"))
    assert not list(check_layers.namespace_problems(file, "uper/base/a.cc"))
