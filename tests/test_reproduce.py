"""`uper reproduce` writes the documented files, and the same files for any number of jobs."""

import csv
import json

import pytest

SMALL_BANDIT = ["--seeds", 3, "--set", "iterations=12", "--set", "steps_per_iteration=50"]
# Figure -> (arguments that make it quick, its CSV files with their first columns).
MSE = "scheme,seed,iteration,mse"
ARMS = "scheme,seed,iteration,arm,probability,estimate,epistemic,target_distance_sq,aleatoric"
FIGURES = {
    "bandit": (SMALL_BANDIT, {"mse.csv": MSE, "arms.csv": ARMS, "mse_identical_start.csv": MSE}),
    "bandit-schemes": (SMALL_BANDIT, {"mse.csv": MSE, "arms.csv": ARMS}),
    "bandit-shifted": (SMALL_BANDIT, {"mse.csv": MSE, "arms.csv": ARMS, "mse_equal_means.csv": MSE}),
    "bandit-uncertainty": (SMALL_BANDIT, {"mse.csv": MSE, "arms.csv": ARMS}),
    "gridworld": (["--seeds", 3, "--set", "episodes=15"],
                  {"returns.csv": "method,seed,episode,return", "heatmap.csv": "method,row,column,draws"}),
    "posterior": (["--seeds", 2], {}),
    "bias-entropy": (["--seeds", 2], {}),
    "bias-error": (["--seeds", 2], {}),
    "phase": ([], {}),
    "direct-variance": (["--seeds", 2], {}),
    "cost-table": (["--set", "environment=minatar/breakout", "--set", "iterations=4", "--set", "iteration_frames=64",
                    "--set", "evaluation_frames=50"],
                   {"data.csv": "reading,device,architecture,agent,iterations,iteration_seconds,iteration_sd_seconds,"
                                "ratio_to_dqn,paper_seconds",
                    "iterations.csv": "reading,device,architecture,seed,iteration,iteration_seconds"}),
}
TIMED = {"cost-table"}  # its files contain times
CLAIM_KEYS = ["id", "statement", "where_in_paper", "statistic", "value", "ci_low", "ci_high", "verdict"]


FROM_RUNS = ["atari-median", "atari-ablation", "atari-bars", "atari-games", "atari-c51"]  # test_report.py


def test_every_figure_is_tested(uper):
    assert uper("list", "figures").stdout.split() == list(FIGURES) + FROM_RUNS


@pytest.mark.parametrize("figure", FIGURES)
def test_files_and_independence_of_jobs(uper, tmp_path, figure):
    arguments, files = FIGURES[figure]
    for jobs in (1, 2):
        result = uper("reproduce", figure, *arguments, "--jobs", jobs, "--out", tmp_path / str(jobs))
        assert result.returncode == 0, result.stderr
    for name, columns in files.items():
        assert (tmp_path / "1" / name).read_text().splitlines()[0].startswith(columns)
    for path in sorted((tmp_path / "1").iterdir()):
        assert path.stat().st_size > 0
        if path.suffix in (".csv", ".json") and figure not in TIMED:
            assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name
    assert (tmp_path / "1" / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "1" / "figure.svg").read_text()
    claims = json.loads((tmp_path / "1" / "claims.json").read_text())
    assert claims
    for claim in claims:
        assert list(claim) == CLAIM_KEYS
        assert claim["verdict"] in ("holds", "fails", "undecided")
    assert len({claim["id"] for claim in claims}) == len(claims)


def test_bandit_rows_are_complete_and_consistent(uper, tmp_path):
    assert uper("reproduce", "bandit", *SMALL_BANDIT, "--out", tmp_path).returncode == 0
    arms = list(csv.DictReader(open(tmp_path / "arms.csv")))
    mse = list(csv.DictReader(open(tmp_path / "mse.csv")))
    assert len(mse) == 5 * 3 * 12 and len(arms) == len(mse) * 5
    for row in mse:
        own = [a for a in arms if all(a[k] == row[k] for k in ("scheme", "seed", "iteration"))]
        assert sum(float(a["probability"]) for a in own) == pytest.approx(1, abs=1e-12)
        assert sum(float(a["draw_share"]) for a in own) == pytest.approx(1, abs=1e-12)
        errors = [(float(a["estimate"]) - 2) ** 2 for a in own]
        assert float(row["mse"]) == pytest.approx(sum(errors) / 5, rel=1e-12)
        if row["scheme"] == "uniform":
            assert all(float(a["probability"]) == pytest.approx(0.2) for a in own)


def test_strict_and_json(uper, tmp_path):
    # After three iterations UPER is not yet comparable with the oracle, so the claim fails.
    result = uper("reproduce", "phase", "--out", tmp_path / "a", "--json")
    summary = json.loads(result.stdout)
    assert result.returncode == 0
    assert summary["figures"][0]["figure"] == "phase" and summary["skipped"] == []
    strict = uper("reproduce", "phase", "--out", tmp_path / "b", "--strict")
    assert strict.returncode == (1 if summary["figures"][0]["fails"] else 0)


def test_all_makes_an_index_page_and_lists_what_it_skips(uper, tmp_path):
    quick = [argument for key in ("iterations=3", "steps_per_iteration=20", "episodes=4")
             for argument in ("--set", key)]
    result = uper("reproduce", "all", "--seeds", 2, *quick, "--out", tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout)
    made = [figure["figure"] for figure in summary["figures"]]
    # The cost table times an Atari game, which a build may lack.
    assert made == [figure for figure in FIGURES if figure not in summary["skipped"]]
    assert set(FIGURES) - set(made) <= {"cost-table"} and "skipped atari-median" in result.stderr
    page = (tmp_path / "index.html").read_text()
    for figure in made:
        assert f'src="{figure}/figure.png"' in page
        assert (tmp_path / figure / "figure.png").exists()
