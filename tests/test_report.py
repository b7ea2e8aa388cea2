"""`uper report` and `uper reproduce atari-*` on run folders with known evaluations."""

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from run_folders import write_run

PONG, BREAKOUT = (-20.7, 14.6), (1.7, 30.5)  # random and human scores of the published table


def at_level(game, level):
    """The return with the normalized score `level`."""
    low, high = game
    return low + level * (high - low)


# Normalized scores of the runs before smoothing, [game][seed][evaluation].
LEVELS = {
    "qr-ens-uper": {"pong": [[0.0, 0.6, 1.2], [0.0, 0.8, 1.0]], "breakout": [[0.1, 0.5, 0.9], [0.1, 0.7, 1.3]]},
    "per": {"pong": [[0.0, 0.4, 0.8], [0.0, 0.2, 0.4]], "breakout": [[-0.1, 0.3, 0.4], [0.1, 0.3, 0.5]]},
}
REFERENCE = {"pong": PONG, "breakout": BREAKOUT}


def write_levels(root, levels=LEVELS, **options):
    return [write_run(root, "atari", agent, game, seed + 1, [at_level(REFERENCE[game], x) for x in curve], **options)
            for agent, games in levels.items() for game, seeds in games.items() for seed, curve in enumerate(seeds)]


def smoothed(curve, window=10):
    return [float(np.mean(curve[max(0, i + 1 - window):i + 1])) for i in range(len(curve))]


def rows(path):
    return list(csv.DictReader(open(path)))


def report(uper, tmp_path, *arguments):
    result = uper("report", *arguments, "--out", tmp_path / "out", "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout), tmp_path / "out"


class Page(HTMLParser):
    """Checks that every tag is closed in order and collects addresses that a browser would load."""

    VOID = {"meta", "img", "br", "link", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href", "srcset", "data")]

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        self.text.append(data)


def read_page(path):
    page = Page()
    text = path.read_text()
    page.feed(text)
    page.close()
    assert page.open == []
    for source in page.sources:
        assert source.startswith(("#", "data:image/png;base64,")), source[:80]
    assert "http:" not in text and "https:" not in text and "@import" not in text and "url(" not in text
    return page


def test_numbers_by_hand(uper, tmp_path):
    summary, out = report(uper, tmp_path, *write_levels(tmp_path / "runs"))
    assert summary["agents"] == ["per", "qr-ens-uper"] and summary["frames"] == 2000 and summary["missing"] == 0
    final = {agent: {game: [smoothed(curve)[-1] for curve in seeds] for game, seeds in games.items()}
             for agent, games in LEVELS.items()}
    for row in summary["aggregates"]:
        own = final[row["agent"]]
        means = [np.mean(own["breakout"]), np.mean(own["pong"])]
        pooled = np.sort(own["breakout"] + own["pong"])
        assert row["median"]["value"] == pytest.approx(np.median(means), abs=1e-12)
        assert row["mean"]["value"] == pytest.approx(np.mean(means), abs=1e-12)
        assert row["iqm"]["value"] == pytest.approx(pooled[1:-1].mean(), abs=1e-12)
        assert row["optimality_gap"]["value"] == pytest.approx(1 - np.minimum(pooled, 1).mean(), abs=1e-12)
        by_seed = [np.median([own["breakout"][s], own["pong"][s]]) for s in (0, 1)]
        assert row["seed_median_mean"]["value"] == pytest.approx(np.mean(by_seed), abs=1e-12)
        assert row["median"]["low"] <= row["median"]["value"] <= row["median"]["high"]
    [pair] = summary["comparisons"]
    assert (pair["subject"], pair["baseline"]) == ("qr-ens-uper", "per") and pair["probability"]["value"] == 1
    for row in rows(out / "bars" / "data.csv"):
        curves = {agent: np.mean([smoothed(c) for c in LEVELS[agent][row["game"]]], axis=0) for agent in LEVELS}
        expected = 100 * (curves["qr-ens-uper"].sum() - curves["per"].sum()) / curves["per"].sum()
        assert float(row["improvement_percent"]) == pytest.approx(expected, rel=1e-12)
    for row in rows(out / "median" / "data.csv"):
        mark = int(row["frames"]) // 1000
        medians = [np.median([smoothed(LEVELS[row["agent"]][game][s])[mark] for game in REFERENCE]) for s in (0, 1)]
        assert float(row["median_mean"]) == pytest.approx(np.mean(medians), abs=1e-12)
        assert float(row["median_sd"]) == pytest.approx(np.std(medians), abs=1e-12)
    page = read_page(out / "report.html")
    words = " ".join(page.text)
    assert "Nothing is missing" in words and "UPER" in words and "{{" not in words


def test_the_window_and_the_references_count(uper, tmp_path):
    runs = write_levels(tmp_path / "runs")
    references = tmp_path / "references.csv"
    references.write_text("env,random,reference\natari/pong,0,10\n")
    summary, _ = report(uper, tmp_path, *runs, "--window", 1, "--references", references)
    own = {row["agent"]: row for row in summary["aggregates"]}["per"]
    pong = np.mean([at_level(PONG, LEVELS["per"]["pong"][s][-1]) / 10 for s in (0, 1)])
    assert own["mean"]["value"] == pytest.approx((pong + np.mean([0.4, 0.5])) / 2, abs=1e-12)


def test_baseline_turns_the_comparison_round(uper, tmp_path):
    runs = write_levels(tmp_path / "runs")
    summary, _ = report(uper, tmp_path, *runs, "--baseline", "qr-ens-uper")
    [pair] = summary["comparisons"]
    assert (pair["subject"], pair["baseline"], pair["probability"]["value"]) == ("per", "qr-ens-uper", 0)


def test_undefined_improvement_is_shown_as_such(uper, tmp_path):
    levels = {"qr-ens-uper": {"pong": [[0, 1, 1]]}, "per": {"pong": [[0, -0.1, -0.2]]}}
    _, out = report(uper, tmp_path, *write_levels(tmp_path / "runs", levels))
    [row] = rows(out / "bars" / "data.csv")
    assert row["improvement_percent"] == "" and float(row["baseline_sum"]) < 0
    assert "undefined" in (out / "bars" / "figure.svg").read_text() or "Undefined" in (out / "report.html").read_text()


def test_missing_runs_are_listed_and_not_invented(uper, tmp_path):
    runs = write_levels(tmp_path / "runs")
    left_out = [run for run in runs if not (run.name.startswith("atari-breakout-per") and run.name.endswith("2"))]
    assert len(left_out) == len(runs) - 1
    summary, out = report(uper, tmp_path, *left_out)
    assert summary["missing"] == 1
    assert rows(out / "missing.csv") == [{"agent": "per", "game": "breakout", "seed": "2"}]
    own = {row["agent"]: row for row in summary["aggregates"]}["per"]
    assert own["complete_seeds"] == 1
    breakout = smoothed(LEVELS["per"]["breakout"][0])[-1]
    pong = np.mean([smoothed(c)[-1] for c in LEVELS["per"]["pong"]])
    assert own["mean"]["value"] == pytest.approx((breakout + pong) / 2, abs=1e-12)
    assert "were not given" in " ".join(read_page(out / "report.html").text)


def test_a_single_run_gives_a_report_without_intervals(uper, tmp_path):
    summary, out = report(uper, tmp_path, write_levels(tmp_path / "runs")[0])
    assert summary["aggregates"][0]["median"]["low"] is None and summary["comparisons"] == []
    for row in rows(out / "median" / "data.csv"):
        assert row["task_median"] and row["iqm"]
        assert row["task_median_low"] == row["task_median_high"] == row["iqm_low"] == row["iqm_high"] == ""
    assert (out / "median" / "figure.png").read_bytes().startswith(b"\x89PNG")
    read_page(out / "report.html")


def test_figures_of_an_earlier_report_do_not_stay(uper, tmp_path):
    runs = write_all_agents(tmp_path / "runs", seeds=1)
    _, out = report(uper, tmp_path, *runs, "--published")
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"median", "ablation", "bars", "games", "c51"}
    (out / "bars" / "notes.txt").write_text("the user's")
    (out / "mine").mkdir()
    shutil.rmtree(out / "c51")
    (out / "c51").mkdir()  # a folder with the name of a figure that is not a figure
    (out / "c51" / "data.csv").write_text("the user's")
    [alone] = [run for run in runs if run.name == "atari-pong-per-1"]
    summary, _ = report(uper, tmp_path, alone)
    assert [section["folder"] for section in summary["sections"]] == ["median", "games"]
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"median", "games", "bars", "mine", "c51"}
    assert [path.name for path in (out / "bars").iterdir()] == ["notes.txt"]
    assert [path.name for path in (out / "c51").iterdir()] == ["data.csv"]


def test_a_folder_stands_for_the_runs_in_it_and_twice_counts_once(uper, tmp_path):
    runs = write_levels(tmp_path / "runs")
    summary, _ = report(uper, tmp_path, tmp_path / "runs", runs[0])
    assert summary["runs"] == len(runs)


def test_atari_subsets(uper, tmp_path):
    games = ["battle_zone", "double_dunk", "name_this_game", "phoenix", "qbert"]
    human = {"battle_zone": 37187.5, "double_dunk": -16.4, "name_this_game": 8049, "phoenix": 7242.6, "qbert": 13455}
    runs = [write_run(tmp_path / "runs", "atari", "per", game, 1, [human[game]]) for game in games]
    summary, _ = report(uper, tmp_path, *runs)
    [row] = summary["subsets"]  # Atari-10 lacks five games
    assert row["subset"] == "Atari-5"
    assert row["estimated_median_percent"] == pytest.approx(101 ** 0.96531 - 1, rel=1e-9)


def test_real_minatar_runs(uper, tmp_path):
    small = ["--frames", 600, "--no-plots", "--set", "evaluate_every_frames=200", "--set", "log_every_frames=200",
             "--set", "evaluation_episodes=2", "--set", "replay.minimum_transitions=100"]
    for seed in (1, 2):
        result = uper("train", "--agent", "dqn", "--env", "minatar/breakout", "--seed", seed, *small,
                      "--out", tmp_path / "runs" / str(seed))
        assert result.returncode == 0, result.stderr
    summary, out = report(uper, tmp_path, tmp_path / "runs", "--published")
    assert summary["suite"] == "minatar" and summary["seeds"] == [1, 2] and summary["frames"] == 600
    own = []
    for seed in (1, 2):
        returns = [float(row["eval_return"]) for row in rows(tmp_path / "runs" / str(seed) / "metrics.csv")
                   if row["eval_return"]]
        own.append((np.mean(returns[-10:]) - 0.515) / (10 - 0.515))
    assert summary["aggregates"][0]["mean"]["value"] == pytest.approx(np.mean(own), abs=1e-12)
    read_page(out / "report.html")


def test_real_runs_with_long_rounds_and_raised_lengths(uper, tmp_path):
    """Rounds of 16 frames pass two or one of the multiples of 10; the first end is not at a multiple."""
    small = ["--no-plots", "--set", "evaluate_every_frames=10", "--set", "environments=16",
             "--set", "evaluation_episodes=1", "--set", "replay.minimum_transitions=1000"]
    for frames in (88, 205):
        result = uper("train", "--agent", "dqn", "--env", "minatar/breakout", "--frames", frames, *small,
                      "--out", tmp_path / "run")
        assert result.returncode == 0, result.stderr
        summary, _ = report(uper, tmp_path, tmp_path / "run")
        assert summary["frames"] >= frames // 10 * 10 and summary["marks"] < frames // 10


def without_cell(lines, frames, column):
    """The lines of a metrics.csv with one cell made empty."""
    index = lines[0].split(",").index(column)
    cells = {line.split(",")[0]: line.split(",") for line in lines}
    cells[str(frames)][index] = ""
    return [",".join(row) for row in cells.values()]


@pytest.mark.parametrize("damage, words", [
    (lambda lines: [line for line in lines if not line.startswith("2000,")], ["no evaluation at frame 2000"]),
    (lambda lines: lines[:1] + lines[2:], ["no evaluation at frame 0"]),
    (lambda lines: without_cell(lines, 1000, "eval_return"), ["no evaluation at frame 1000"]),
    (lambda lines: without_cell(lines, 4000, "eval_return"), ["no evaluation at frame 4000"]),
    (lambda lines: lines + lines[-1:], ["metrics.csv:7", "frame 4000 after frame 4000"]),
    (lambda lines: lines[:2] + lines[1:], ["metrics.csv:3", "frame 0 after frame 0"]),
    (lambda lines: lines[:2] + lines[3:1:-1] + lines[4:], ["no evaluation at frame 1000"]),
])
def test_a_hole_in_the_log_is_not_taken(uper, tmp_path, damage, words):
    good = write_run(tmp_path / "runs", "atari", "per", "pong", 1, [0, 1, 2, 3, 4])
    run = write_run(tmp_path / "runs", "atari", "per", "pong", 2, [0, 1, 2, 3, 4])
    lines = (run / "metrics.csv").read_text().splitlines()
    (run / "metrics.csv").write_text("\n".join(damage(lines)) + "\n")
    result = uper("report", good, run, "--out", tmp_path / "out")
    assert result.returncode == 5, result.stderr
    for word in [str(run / "metrics.csv"), *words]:
        assert word in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_round_can_pass_several_marks(uper, tmp_path):
    """32 environments play 128 frames at once: from 0 past 50 and 100 in one round, but not from 127 to 382."""
    run = write_run(tmp_path / "runs", "atari", "per", "pong", 1, [0] * 9, every=50)
    config = re.sub(r"^environments = .*\n", "", (run / "config.toml").read_text(), flags=re.M)
    (run / "config.toml").write_text("environments = 32\n" + config)
    (run / "metrics.csv").write_text("frames,eval_return\n0,0\n127,1\n254,2\n382,3\n400,4\n")
    summary, _ = report(uper, tmp_path, run)
    assert summary["marks"] == 5
    (run / "metrics.csv").write_text("frames,eval_return\n0,0\n127,1\n382,3\n400,4\n")
    result = uper("report", run, cwd=tmp_path)
    assert result.returncode == 5 and "no evaluation at frame 150" in result.stderr


def test_options_left_to_the_protocol_equal_its_values(uper, tmp_path):
    same = ["", "sticky = 0.0", "noop_max_frames = 30", "time_limit_frames = 108000"]
    runs = [write_run(tmp_path / "runs", "atari", "per", "pong", seed, [0, 1], extra=extra)
            for seed, extra in enumerate(same, 1)]
    assert report(uper, tmp_path, *runs)[0]["runs"] == len(same)
    dopamine = [write_run(tmp_path / "dopamine", "atari", "per", "pong", seed, [0, 1],
                          extra='protocol = "dopamine"\n' + extra)
                for seed, extra in enumerate(["", "sticky = 0.25", "noop_max_frames = 0"], 1)]
    assert report(uper, tmp_path, *dopamine)[0]["runs"] == 3
    minatar = [write_run(tmp_path / "minatar", "minatar", "dqn", "breakout", seed, [0, 1], extra=extra)
               for seed, extra in enumerate(["", "sticky = 0.1", "time_limit_frames = 0"], 1)]
    assert report(uper, tmp_path, *minatar)[0]["runs"] == 3
    other = write_run(tmp_path / "other", "atari", "qr-dqn", "pong", 1, [0, 1], extra="noop_max_frames = 0")
    result = uper("report", runs[0], other, cwd=tmp_path)
    assert result.returncode == 2 and "environment.noop_max_frames" in result.stderr


@pytest.mark.parametrize("text, words", [
    ("env,random,reference\natari/pong,0,1\natari/pongg,0,1\n", [":3", "atari/pongg", "did you mean 'atari/pong'"]),
    ("game,random,human\npongg,0,1\n", [":2", "atari/pongg", "did you mean 'atari/pong'"]),
    ("env,random,reference\natari/pong,0,1\natari/pong,0,2\n", [":3", "atari/pong is there already"]),
    ("env,random,reference\natari/pong,nan,1\n", [":2", "'nan'"]),
    ("env,random,reference\natari/pong,0,inf\n", [":2", "'inf'"]),
    ("env,random,reference\natari/pong,1,1\n", [":2", "atari/pong needs two different scores"]),
])
def test_bad_references(uper, tmp_path, text, words):
    run = write_run(tmp_path / "runs", "atari", "per", "pong", 1, [0, 1])
    references = tmp_path / "references.csv"
    references.write_text(text)
    for command in (["report", run, "--references", references],
                    ["reproduce", "atari-median", run, "--set", f"references={references}"]):
        result = uper(*command, cwd=tmp_path)
        assert result.returncode == 2, result.stderr
        for word in ["references.csv", *words]:
            assert word in result.stderr
    assert not (tmp_path / "results").exists()


FIGURES = ["atari-median", "atari-ablation", "atari-bars", "atari-games", "atari-c51"]
CLAIM_KEYS = ["id", "statement", "where_in_paper", "statistic", "value", "ci_low", "ci_high", "verdict"]


def write_all_agents(root, seeds=2):
    """UPER above all others, but below PER in breakout."""
    heights = {"qr-ens-uper": 1.0, "per": 0.5, "qr-dqn": 0.6, "qr-per": 0.7, "qr-ens-per": 0.8, "qr-ens-epi": 0.75,
               "qr-ens-uni": 0.65, "c51-ens-uper": 0.9, "c51-ens-per": 0.4}
    levels = {agent: {"pong": [[0.0, height, height + 0.01 * seed] for seed in range(seeds)],
                      "breakout": [[0.0, 1.2 if agent == "per" else height, height] for seed in range(seeds)]}
              for agent, height in heights.items()}
    return write_levels(root, levels)


@pytest.fixture(scope="module")
def figures(uper, tmp_path_factory):
    """Makes every figure once without smoothing. Gives {figure: folder}."""
    root = tmp_path_factory.mktemp("figures")
    runs = write_all_agents(root / "runs")
    for figure in FIGURES:
        result = uper("reproduce", figure, *runs, "--out", root / figure, "--set", "published=true",
                      "--set", "replications=50", "--set", "window=1", "--jobs", 1)
        assert result.returncode == 0, result.stderr
    return {figure: root / figure for figure in FIGURES}


@pytest.mark.parametrize("figure", FIGURES)
def test_files_of_a_figure(figures, figure):
    folder = figures[figure]
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "figure.svg").read_text()
    claims = json.loads((folder / "claims.json").read_text())
    assert claims and len({claim["id"] for claim in claims}) == len(claims)
    assert all(list(claim) == CLAIM_KEYS for claim in claims)
    missing = rows(folder / "missing.csv")
    assert {row["game"] for row in missing}.isdisjoint({"pong", "breakout"})
    assert bool(missing) == (figure != "atari-c51")  # it takes the games of its runs
    published = {row["agent"]: float(row["value"]) for row in rows(folder / "published.csv")}
    assert published["dqn"] == pytest.approx(-0.0146)  # at frame 0, the only published mark within these runs


def test_a_figure_does_not_depend_on_jobs(uper, tmp_path, figures):
    folder = figures["atari-median"]
    result = uper("reproduce", "atari-median", folder.parent / "runs", "--out", tmp_path / "out", "--jobs", 2,
                  "--set", "published=true", "--set", "replications=50", "--set", "window=1")
    assert result.returncode == 0, result.stderr
    for path in sorted(folder.iterdir()):
        if path.suffix in (".csv", ".json"):
            assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes(), path.name


def test_claims_follow_the_numbers(figures):
    claims = {claim["id"]: claim for folder in figures.values()
              for claim in json.loads((folder / "claims.json").read_text())}
    # At the first mark all agents are equal, so UPER is above at 2 of 3 marks, short of "throughout".
    assert claims["40b"]["verdict"] == "fails"
    assert claims["40b"]["value"] == pytest.approx(2 / 3 - 0.95)
    for holds in ("41a", "41b", "42a", "42b", "42c", "43", "43-pong", "44d"):
        assert claims[holds]["verdict"] == "holds", claims[holds]
    assert claims["41a"]["value"] == pytest.approx((0.2 + 0.2) / 3, abs=1e-9)
    assert claims["44a"]["value"] == pytest.approx(0.5)  # on average UPER is above PER in both games
    # In breakout PER is above UPER at one mark by 0.2 and below at another by 0.5.
    worse = claims["46e"]
    assert worse["statement"].endswith("worse in breakout, against per") and worse["verdict"] == "fails"
    assert worse["value"] == pytest.approx((0.2 - 0.5) / 3, abs=1e-9)
    missing_game = claims["46a"]  # asterix was not given
    assert missing_game["verdict"] == "undecided" and missing_game["value"] is None
    assert "not tested" in missing_game["statistic"]


@pytest.fixture
def broken(tmp_path):
    """A good run and one bad run of every kind, by name."""
    runs = tmp_path / "runs"
    pong = [at_level(PONG, level) for level in (0, 0.5, 1)]
    made = {
        "good": write_run(runs, "atari", "per", "pong", 1, pong),
        "minatar": write_run(runs / "m", "minatar", "dqn", "breakout", 1, [0, 1, 2]),
        "sticky": write_run(runs / "s", "atari", "per", "pong", 2, pong, extra="sticky = 0.25"),
        "unfinished": write_run(runs / "u", "atari", "per", "pong", 3, pong[:2], finished=False, frames=2000),
        "unevaluated": write_run(runs / "e", "atari", "per", "pong", 4, [None, None, None][:1] + [None, 1.0]),
        "longer": write_run(runs / "l", "atari", "qr-dqn", "pong", 5, pong + [1.0]),
        "twin": write_run(runs / "t", "atari", "per", "pong", 1, pong),
        "tuned": write_run(runs / "o", "atari", "per", "pong", 6, pong),
        "no metrics": write_run(runs / "n", "atari", "per", "pong", 7, pong),
        "damaged": write_run(runs / "d", "atari", "per", "pong", 8, pong),
        "shortened": write_run(runs / "h", "atari", "per", "pong", 9, pong),
    }
    (made["unevaluated"] / "metrics.csv").write_text("frames,eval_return\n0,\n2000,\n")
    config = made["tuned"] / "config.toml"
    config.write_text(re.sub(r"learning_rate = .*", "learning_rate = 1e-3", config.read_text(), count=1))
    (made["no metrics"] / "metrics.csv").unlink()
    (made["damaged"] / "metrics.csv").write_text("frames,eval_return\n0,abc\n")
    rows = (made["shortened"] / "metrics.csv").read_text()
    (made["shortened"] / "metrics.csv").write_text(rows[:rows.index("\n2000,") + 3])
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("not a run")
    return made | {"empty": tmp_path / "empty", "file": tmp_path / "file", "nowhere": tmp_path / "nowhere"}


@pytest.mark.parametrize("names, code, words", [
    (["nowhere"], 3, ["there is no folder"]),
    (["file"], 3, ["there is no folder"]),
    (["empty"], 3, ["not a run folder", "config.toml"]),
    (["good", "minatar"], 2, ["environment.name", "different suites"]),
    (["good", "sticky"], 2, ["environment.sticky", "different protocols"]),
    (["good", "unfinished"], 3, ["not finished (1000 of 2000 frames)", "--partial"]),
    (["good", "unevaluated"], 3, ["no evaluation"]),
    (["good", "longer"], 2, ["frames", "--partial"]),
    (["good", "twin"], 2, ["two runs of per on atari/pong with seed 1"]),
    (["good", "tuned"], 2, ["optimizer.learning_rate", "same settings"]),
    (["no metrics"], 3, ["metrics.csv"]),
    (["damaged"], 5, ["metrics.csv:2", "abc"]),
    (["good", "shortened"], 5, ["metrics.csv ends at frame 1000, the run at 2000", "--partial"]),
])
@pytest.mark.parametrize("command", [["report"], ["reproduce", "atari-median"]])
def test_bad_runs(uper, tmp_path, broken, command, names, code, words):
    result = uper(*command, *[broken[name] for name in names], cwd=tmp_path)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr
    assert not (tmp_path / "results").exists(), "bad input must leave nothing behind"


def test_partial_takes_what_all_runs_have(uper, tmp_path, broken):
    summary, out = report(uper, tmp_path, broken["good"], broken["unfinished"], broken["longer"], "--partial")
    assert summary["frames"] == 1000 and summary["unfinished"] == 1
    assert "unfinished" in " ".join(read_page(out / "report.html").text)


def test_evaluations_without_a_whole_episode_are_named(uper, tmp_path):
    """A Pong game cut off at -2 after 400 frames must not count as a score of 0.53."""
    run = write_run(tmp_path / "runs", "atari", "per", "pong", 1, [-2, -2, -20])
    (run / "metrics.csv").write_text("frames,eval_return,eval_episodes\n0,-2,0\n1000,-2,0\n2000,-20,1\n")
    summary, out = report(uper, tmp_path, run)
    assert summary["cut_evaluations"] == 2
    assert "2 evaluations ended before their first episode" in " ".join(read_page(out / "report.html").text)
    (run / "metrics.csv").write_text("frames,eval_return,eval_episodes\n0,-2,1\n1000,-2,1\n2000,-20,1\n")
    summary, out = report(uper, tmp_path, run)
    assert summary["cut_evaluations"] == 0
    assert "ended before" not in " ".join(read_page(out / "report.html").text)


@pytest.mark.parametrize("arguments, code, words", [
    (["report"], 2, ["runs"]),
    (["report", "RUN", "--baseline", "perr"], 2, ["perr", "did you mean 'per'"]),
    (["report", "RUN", "--references", "none.csv"], 3, ["none.csv"]),
    (["report", "RUN", "--references", "."], 3, ["cannot read the reference scores"]),
    (["reproduce", "atari-median", "RUN", "--set", "references=none.csv"], 2, ["none.csv"]),
    (["report", "RUN", "--window", "0"], 2, ["--window"]),
    (["reproduce", "atari-median"], 3, ["training runs"]),
    (["reproduce", "atari-bars", "RUN"], 3, ["qr-ens-uper"]),
    (["reproduce", "atari-c51", "RUN"], 3, ["c51-ens-uper"]),
    (["reproduce", "atari-median", "RUN", "--set", "windw=3"], 2, ["did you mean 'window'"]),
])
def test_bad_arguments(uper, tmp_path, broken, arguments, code, words):
    result = uper(*[broken["good"] if word == "RUN" else word for word in arguments], cwd=tmp_path)
    assert result.returncode == code, result.stderr
    for word in words:
        assert word in result.stderr


@pytest.mark.soak
def test_the_report_in_a_browser(uper, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium here: `apt-get install chromium` to open the report in a browser")
    _, out = report(uper, tmp_path, *write_all_agents(tmp_path / "runs"))
    common = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    url = (out / "report.html").as_uri()
    subprocess.run([*common, f"--screenshot={tmp_path / 'page.png'}", "--window-size=1200,4000", url], check=True,
                   capture_output=True, timeout=180)
    from PIL import Image
    with Image.open(tmp_path / "page.png") as image:
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3).astype(int)
    assert (np.ptp(pixels, axis=1) > 60).sum() > 5000, "the pictures show colors"
    # Clicking the first column's head sorts the table: the script runs from the file system.
    page = (out / "report.html").read_text().replace(
        "</body>", "<script>document.querySelector('table.sortable th').click()</script></body>")
    (out / "clicked.html").write_text(page)
    dom = subprocess.run([*common, "--dump-dom", (out / "clicked.html").as_uri()], check=True, capture_output=True,
                         text=True, timeout=180).stdout
    assert 'aria-sort="descending"' in dom and "naturalWidth" not in dom
