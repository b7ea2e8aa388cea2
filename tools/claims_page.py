#!/usr/bin/env python3
"""claims_page.py FOLDER > docs/claims.md: the claims.json files of `uper reproduce all` as a page."""

import json
import sys
from pathlib import Path

ORDER = ["bandit", "bandit-schemes", "bandit-shifted", "bandit-uncertainty", "gridworld", "posterior",
         "bias-entropy", "bias-error", "phase", "direct-variance"]
# Not part of `reproduce all` without runs, or where a machine's speed counts: shown if they are there.
FURTHER = ["cost-table", "atari-median", "atari-ablation", "atari-c51", "atari-bars", "atari-games"]
HEAD = """# The paper's claims, tested

Made by `uper reproduce all` (default seeds) and `tools/claims_page.py`. A claim **holds** or **fails**
when the 95 % bootstrap interval of its statistic lies wholly on or against the claimed side, else it is
*undecided*. Statistics were fixed before the runs, except for 24b and one
setting of the gridworld (deviations.md). L: line of the paper's LaTeX source. Claims about
eight panels count as holding when the worst panel does; the panels are in `claims.json`.
"""
# The claims that `uper reproduce atari-* RUN...` computes. The runs are hundreds of millions of frames each.
ATARI = """## Atari (needs runs)

`uper reproduce atari-median|atari-ablation|atari-c51|atari-bars|atari-games RUN...` tests these and writes
`claims.json`. No claim is decided here: the runs (57 games of 200 million frames, several seeds per agent) have not
been made. Statistics are one number per seed that both agents have in all games of both; with runs of other suites or of
fewer games the statistic says so, with none the claim is `undecided`, "not tested". *UPER*: `qr-ens-uper`; *score*: human-normalized,
smoothed over 10 evaluations.

| # | figure | the paper says | where | statistic | state |
|---|---|---|---|---|---|
| 40a-d | `atari-median` | The median of UPER is above that of `per`, `qr-dqn`, `qr-per`, `qr-ens-per` throughout | L366 | share of frame marks at which the median score of UPER is above, minus 0.95; > 0 | needs runs |
| 41a | `atari-median` | UPER is above `qr-ens-per`: it is not the ensemble alone | L380 | mean over frame marks of the difference of the median scores; > 0 | needs runs |
| 41b | `atari-median` | UPER is above `qr-per`: it is not quantile regression alone | L380 | the same | needs runs |
| 42a-c | `atari-ablation` | On the same ensemble UPER is above `qr-ens-uni`, `qr-ens-epi`, `qr-ens-per` | L1182 | the same | needs runs |
| 43 | `atari-c51` | C51 with UPER is better than C51 with PER in 4 of 5 games | L1227 | share of games with the larger mean score over frame marks, minus 0.7; > 0; and each game alone | needs runs |
| 44a-d | `atari-bars` | UPER is better than `per`, `qr-dqn`, `qr-per`, `qr-ens-per` in most games | L380 | share of games with the larger mean score over frame marks, minus 0.5; > 0 | needs runs |
| 45a-d | `atari-bars` | Where UPER is worse than these, it is so by less | L366, L380 | mean absolute difference of the mean scores: games where UPER is better minus the others; > 0 | needs runs |
| 46a-d | `atari-games` | UPER is vastly superior in asterix and chopper_command, against `per` and `qr-dqn` | L366 | mean over frame marks of the difference of the scores; > 0 | needs runs |
| 46e-h | `atari-games` | UPER is worse in breakout and krull, against `per` and `qr-dqn` | L366 | the same with the other sign; > 0 | needs runs |
"""


def number(value):
    return "∞" if value is None else f"{value:.3g}"


def row(claim):
    verdict = {"holds": "**holds**", "fails": "**fails**", "undecided": "*undecided*"}[claim["verdict"]]
    value = f"{number(claim['value'])} [{number(claim['ci_low'])}, {number(claim['ci_high'])}]"
    cells = [claim["id"], claim["statement"], claim["where_in_paper"], claim["statistic"], value, verdict]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def section(path):
    claims = json.loads((path / "claims.json").read_text())
    seeds = json.loads((path / "settings.json").read_text())["seeds"]
    print(f"## {path.name} ({seeds} seed{'s' if seeds > 1 else ''})\n")
    print("| # | the paper says | where | statistic | value [95 %] | verdict |\n|---|---|---|---|---|---|")
    panels = [claim for claim in claims if "." in claim["id"]]
    for claim in claims:
        if claim not in panels:
            print(row(claim))
    if panels:
        held = sum(claim["verdict"] == "holds" for claim in panels)
        print(f"\nPanel by panel: {held} of {len(panels)} hold.")
    print()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    print(HEAD)
    for figure in ORDER:
        section(folder / figure)
    further = [figure for figure in FURTHER if (folder / figure / "claims.json").exists()]
    for figure in further:
        section(folder / figure)
    if not any(figure.startswith("atari-") for figure in further):
        print(ATARI, end="")


if __name__ == "__main__":
    main()
