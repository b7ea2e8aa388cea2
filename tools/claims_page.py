#!/usr/bin/env python3
"""claims_page.py FOLDER > docs/claims.md: the claims.json files of `uper reproduce all` as a page."""

import json
import sys
from pathlib import Path

ORDER = ["bandit", "bandit-schemes", "bandit-shifted", "bandit-uncertainty", "gridworld", "posterior",
         "bias-entropy", "bias-error", "phase", "direct-variance"]
HEAD = """# The paper's claims about its small experiments, tested

Made by `uper reproduce all` (default seeds) and `tools/claims_page.py`. A claim **holds** or **fails**
when the 95 % bootstrap interval of its statistic lies wholly on or against the claimed side, else it is
*undecided*. Statistics were fixed before the runs, but for 24b and one
setting of the gridworld (deviations.md). L: line of the paper's LaTeX source. Claims about
eight panels count as holding when the worst panel does; the panels are in `claims.json`.
"""


def number(value):
    return "∞" if value is None else f"{value:.3g}"


def row(claim):
    verdict = {"holds": "**holds**", "fails": "**fails**", "undecided": "*undecided*"}[claim["verdict"]]
    value = f"{number(claim['value'])} [{number(claim['ci_low'])}, {number(claim['ci_high'])}]"
    cells = [claim["id"], claim["statement"], claim["where_in_paper"], claim["statistic"], value, verdict]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(HEAD)
    for figure in ORDER:
        path = Path(sys.argv[1]) / figure
        claims = json.loads((path / "claims.json").read_text())
        seeds = json.loads((path / "settings.json").read_text())["seeds"]
        print(f"## {figure} ({seeds} seed{'s' if seeds > 1 else ''})\n")
        print("| # | the paper says | where | statistic | value [95 %] | verdict |\n|---|---|---|---|---|---|")
        panels = [claim for claim in claims if "." in claim["id"]]
        for claim in claims:
            if claim not in panels:
                print(row(claim))
        if panels:
            held = sum(claim["verdict"] == "holds" for claim in panels)
            print(f"\nPanel by panel: {held} of {len(panels)} hold.")
        print()


if __name__ == "__main__":
    main()
