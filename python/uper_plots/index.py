"""python -m uper_plots.index FOLDER: writes FOLDER/index.html with every figure below FOLDER and its claims."""

import html
import json
import os
import sys
from pathlib import Path

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>uper: the paper's small experiments</title>

<style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 1200px; margin: 2em auto; padding: 0 1em; }}

img {{ max-width: 100%; border: 1px solid #ddd; }}
table {{ border-collapse: collapse; margin: 1em 0 2.5em; width: 100%; font-size: 13px; }}

th, td {{ border-bottom: 1px solid #ddd; padding: 4px 8px; text-align: left; vertical-align: top; }}
td.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
.holds {{ color: #176e2c; font-weight: 600; }}
.fails {{ color: #b3261e; font-weight: 600; }}
.undecided {{ color: #8a6100; font-weight: 600; }}
</style>

<h1>Uncertainty prioritized experience replay: the small experiments</h1>
<p>{summary} A claim <span class="holds">holds</span> or <span class="fails">fails</span> when the 95 %
bootstrap interval of its statistic lies wholly on or against the claimed side; otherwise it is
<span class="undecided">undecided</span>. Lines (L) are those of the paper's LaTeX source.</p>

<p>{links}</p>
{sections}
</html>
"""


def number(value):
    return "" if value is None else f"{value:.4g}"


def claim_row(claim):
    interval = f"[{number(claim['ci_low'])}, {number(claim['ci_high'])}]"
    cells = [
        f"<td>{html.escape(claim['id'])}</td>",
        f"<td>{html.escape(claim['statement'])}</td>",
        f"<td>{html.escape(claim['where_in_paper'])}</td>",
        f"<td>{html.escape(claim['statistic'])}</td>",
        f"<td class=\"number\">{number(claim['value'])}<br>{interval}</td>",
        f"<td class=\"{claim['verdict']}\">{claim['verdict']}</td>",
    ]
    return "<tr>" + "".join(cells) + "</tr>"


def section(name, claims):
    rows = "\n".join(claim_row(claim) for claim in claims)
    return f"""<h2 id="{name}">{name}</h2>
<a href="{name}/figure.svg"><img src="{name}/figure.png" alt="figure {name}"></a>
<table><tr><th>claim</th><th>the paper says</th><th>where</th><th>statistic</th><th>value</th>
<th>verdict</th></tr>
{rows}
</table>"""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    figures = sorted(path.parent.name for path in root.glob("*/claims.json"))
    claims = {name: json.loads((root / name / "claims.json").read_text()) for name in figures}
    verdicts = [claim["verdict"] for listed in claims.values() for claim in listed]
    summary = (f"{len(verdicts)} tests of the paper's claims: {verdicts.count('holds')} hold, "
               f"{verdicts.count('fails')} fail, {verdicts.count('undecided')} undecided.")
    page = PAGE.format(
        summary=summary,
        links=" · ".join(f'<a href="#{name}">{name}</a>' for name in figures),
        sections="\n".join(section(name, claims[name]) for name in figures),
    )
    temporary = root / f".index.{os.getpid()}.html"
    temporary.write_text(page)
    os.replace(temporary, root / "index.html")


if __name__ == "__main__":
    main()
