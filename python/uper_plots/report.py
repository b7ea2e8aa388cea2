"""python -m uper_plots.report FOLDER: draws the pictures of `uper report` from FOLDER's CSV files and
writes FOLDER/report.html, one page that contains everything and needs no network."""

import base64
import csv
import html
import importlib
import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from uper_plots import scores, style
from uper_plots.style import plt

TEMPLATE = Path(__file__).with_name("report.template.html")
STATISTICS = {  # of aggregates.csv: (name, explanation)
    "iqm": ("IQM", "interquartile mean: mean of the middle half of all runs"),
    "median": ("median", "median over games of the mean over seeds"),
    "mean": ("mean", "mean over games of the mean over seeds"),
    "optimality_gap": ("optimality gap", "mean distance below 1; smaller is better"),
    "seed_median_mean": ("median by seed, mean", "median over games for each seed, then the mean over "
                                                 "seeds (the paper's order); interval over seeds"),
    "seed_median_median": ("median by seed, median", "the same with the median over seeds (DQN Zoo's "
                                                     "order); range over seeds"),
}
HEADINGS = {
    "median": ("Median over games", "The paper's main figure: the median over games for each seed; line: "
               "mean over seeds, band: two standard deviations over seeds."),
    "ablation": ("The priority alone", "The same ensemble under different priorities."),
    "bars": ("Cumulative improvement by game", "C = 100 · Σ(subject − baseline) / Σ baseline of normalized "
             "scores over all frame marks, curves averaged over seeds. Undefined where the baseline's sum "
             "is not positive."),
    "games": ("All games", "Mean over seeds, band: two standard deviations."),
    "c51": ("UPER on C51", "Ensembles of C51 that differ in the priority."),
}
CSV_FILES = ["runs.csv", "missing.csv", "aggregates.csv", "comparisons.csv", "profiles.csv", "subsets.csv"]


def number(text, digits=3):
    try:
        value = float(text)
    except (TypeError, ValueError):
        return "–"
    return f"{value:.{digits}g}" if abs(value) < 1e5 else f"{value:,.0f}"


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def table(head, rows, identifier=None):
    """A sortable table. A cell is text, or (text, value to sort by)."""
    def cell(content):
        text, key = content if isinstance(content, tuple) else (content, None)
        if key is None:
            return f"<td>{text}</td>"
        return f'<td class="number" data-key="{html.escape(str(key))}">{text}</td>'

    name = f' id="{identifier}"' if identifier else ""
    top = "".join(f'<th scope="col">{title}</th>' for title in head)
    body = "\n".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    return (f'<div class="scroll"><table class="sortable"{name}><thead><tr>{top}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>")


def agent_cell(agent):
    return (f'<span class="dot" style="background:{scores.color(agent)}"></span>'
            f"{html.escape(scores.label(agent))} <code>{html.escape(agent)}</code>")


def interval_cell(row):
    """The text "value [low, high]" of a row of aggregates.csv, and the value to sort by."""
    if not row:
        return ("–", "")
    bounds = f"[{number(row['low'])}, {number(row['high'])}]" if row["low"] else "one run per game: no interval"
    return (f"{number(row['value'])}<br><small>{bounds}</small>", row["value"])


def aggregates_section(folder, report):
    values = {(row["agent"], row["statistic"]): row for row in rows_of(folder / "aggregates.csv")}
    if not values:
        return "<p>There is no game that all agents have: nothing can be aggregated.</p>"
    head = ["agent"] + [f'<span title="{html.escape(what)}">{name}</span>' for name, what in STATISTICS.values()]
    body = [[agent_cell(agent)] + [interval_cell(values.get((agent, key))) for key in STATISTICS]
            for agent in report["agents"] if (agent, "iqm") in values]
    notes = "".join(f"<li><b>{name}</b>: {html.escape(what)}</li>" for name, what in STATISTICS.values())
    left_out = [agent_cell(agent) for agent in report["agents"] if (agent, "iqm") not in values]
    warning = ('<p class="warning">Not aggregated, for too few games in common with the others: '
               + ", ".join(left_out) + ".</p>") if left_out else ""
    return warning + table(head, body) + f"<details><summary>What these are</summary><ul>{notes}</ul></details>"


def comparisons_section(folder):
    rows = [[agent_cell(row["subject"]), agent_cell(row["baseline"]), (row["games"], row["games"]),
             interval_cell({"value": row["probability"], "low": row["low"], "high": row["high"]})]
            for row in rows_of(folder / "comparisons.csv")]
    if not rows:
        return ""
    head = ["agent", "against", "games", "probability of improvement"]
    return ("<h2>Comparisons</h2><p>Probability that a run of the first agent ends above a run of the second on "
            "a game drawn at random; 0.5: no difference.</p>" + table(head, rows))


def subsets_section(folder):
    rows = [[agent_cell(row["agent"]), html.escape(row["subset"]),
             (number(row["estimated_median_percent"]) + " %", row["estimated_median_percent"])]
            for row in rows_of(folder / "subsets.csv")]
    if not rows:
        return ""
    return ("<h2>Atari-5 and Atari-10</h2><p>Estimates of the median over all 57 games from a few (Aitchison et "
            "al. 2023). They rank agents under one protocol; the values themselves are rough.</p>"
            + table(["agent", "subset", "estimated median"], rows))


def games_section(folder, report):
    """Final scores with one row per game and one column per agent."""
    returns = defaultdict(list)
    for row in rows_of(folder / "runs.csv"):
        returns[row["game"], row["agent"]].append((float(row["smoothed_return"]), float(row["normalised"])))

    def cell(game, agent):
        found = returns.get((game, agent))
        if not found:
            return ('<span class="missing">no run</span>', "-inf")
        raw, normalized = np.array(found).T
        spread = f" ± {number(raw.std())}" if len(found) > 1 else ""
        return (f"{number(raw.mean(), 4)}{spread}<br><small>{number(normalized.mean())} normalized, "
                f"{len(found)} seed{'s' if len(found) > 1 else ''}</small>", normalized.mean())

    body = [[html.escape(game.replace("_", " "))] + [cell(game, agent) for agent in report["agents"]]
            for game in report["games"]]
    head = ["game"] + [agent_cell(agent) for agent in report["agents"]]
    return (f"<h2>Scores by game</h2><p>Return at {report['frames']:,} frames, trailing mean of "
            f"{report['window']} evaluations; mean and standard deviation over seeds.</p>" + table(head, body))


def picture(path, alt):
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt)}">'


def claims_table(path, suite):
    claims = json.loads(path.read_text())
    if not claims:
        return ""
    rows = [[html.escape(claim["id"]), html.escape(claim["statement"]), html.escape(claim["where_in_paper"]),
             html.escape(claim["statistic"]),
             (f"{number(claim['value'])}<br><small>[{number(claim['ci_low'])}, {number(claim['ci_high'])}]"
              "</small>", claim["value"]),
             f'<span class="{claim["verdict"]}">{claim["verdict"]}</span>'] for claim in claims]
    head = ["claim", "the paper says", "where", "statistic", "value", "verdict"]
    where = "" if suite == "Atari" else f" (they are about Atari; these are runs on {html.escape(suite)})"
    return f"<details open><summary>The paper's claims on these runs{where}</summary>{table(head, rows)}</details>"


def figure_section(folder, section):
    name = section["folder"]
    title, words = HEADINGS[name]
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in scores.about(folder / name)["notes"])
    notes = f'<ul class="notes">{notes}</ul>' if notes else ""
    return (f'<h2 id="{name}">{title}</h2><p>{words}</p>{picture(folder / name / "figure.png", title)}{notes}'
            + claims_table(folder / name / "claims.json", scores.suite(scores.about(folder / name))))


def draw_profiles(folder, report):
    data = scores.read(folder / "profiles.csv")
    figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
    for agent in report["agents"]:
        rows = scores.rows_where(data, agent=agent)
        if len(rows["tau"]) == 0:
            continue
        axes.plot(rows["tau"], rows["share"], color=scores.color(agent), label=scores.label(agent))
        axes.fill_between(rows["tau"], rows["low"], rows["high"], color=scores.color(agent), alpha=0.18, lw=0)
    axes.set_xlabel(r"$\tau$: " + scores.unit(report))
    axes.set_ylabel(r"share of runs above $\tau$")
    axes.set_ylim(-0.03, 1.03)
    axes.grid(color="#e6e6e6", linewidth=0.6)
    if len(data["tau"]):
        axes.legend()
    return figure


def draw_intervals(folder, report):
    """Draws IQM, median, mean and optimality gap with their 95 % intervals."""
    values = {(row["agent"], row["statistic"]): row for row in rows_of(folder / "aggregates.csv")}
    names = ["iqm", "median", "mean", "optimality_gap"]
    agents = [agent for agent in report["agents"] if (agent, "iqm") in values][::-1]
    figure, axes = plt.subplots(1, len(names), figsize=(10.5, 0.9 + 0.34 * len(agents)), sharey=True,
                                layout="constrained")
    for one, name in zip(axes, names):
        for index, agent in enumerate(agents):
            row = values.get((agent, name))
            if not row:
                continue
            value = float(row["value"])
            if row["low"]:
                one.barh(index, float(row["high"]) - float(row["low"]), left=float(row["low"]), height=0.6,
                         color=scores.color(agent), alpha=0.45)
            one.plot([value, value], [index - 0.3, index + 0.3], color=scores.color(agent), linewidth=2.2)
        one.set_title(STATISTICS[name][0], loc="left")
        one.set_yticks(range(len(agents)), [scores.label(agent) for agent in agents])
        one.grid(axis="x", color="#e6e6e6", linewidth=0.6)
        one.set_axisbelow(True)
    return figure


def save_png(figure, path):
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.png")
    figure.savefig(temporary, bbox_inches="tight")
    os.replace(temporary, path)
    plt.close(figure)


def missing_section(folder, report):
    parts = []
    if report["unfinished"]:
        parts.append(f"<p>{report['unfinished']} of {report['runs']} runs are unfinished; all curves end where the "
                     f"shortest does, at {report['frames']:,} frames.</p>")
    if report["cut_evaluations"]:
        parts.append(f'<p class="warning">{report["cut_evaluations"]} evaluations ended before their first episode did '
                     "(<code>evaluation_frames</code>): their returns are of unfinished games, not scores.</p>")
    missing = rows_of(folder / "missing.csv")
    if missing:
        games = defaultdict(list)
        for row in missing:
            games[row["agent"], row["game"]].append(row["seed"])
        rows = [[agent_cell(agent), html.escape(game), ", ".join(map(html.escape, seeds))]
                for (agent, game), seeds in games.items()]
        parts.append(f"<p>{len(missing)} runs of the grid agents × games × seeds were not given. Aggregates use only "
                     "games that all agents shown have.</p><details><summary>Which</summary>"
                     + table(["agent", "game", "seeds"], rows) + "</details>")
    if not parts:
        return '<p class="good">Nothing is missing: every agent has every game and seed.</p>'
    return '<div class="warning">' + "".join(parts) + "</div>"


def runs_section(folder):
    rows = [[agent_cell(row["agent"]), html.escape(row["game"]), (row["seed"], row["seed"]),
             (f"{int(row['frames']):,}", row["frames"]), row["finished"], (row["evaluations"], row["evaluations"]),
             (number(row["return"], 4), row["return"]), (number(row["smoothed_return"], 4), row["smoothed_return"]),
             (number(row["normalised"]), row["normalised"])] for row in rows_of(folder / "runs.csv")]
    head = ["agent", "game", "seed", "frames", "finished", "evaluations", "last return", "smoothed", "normalized"]
    return "<details><summary>All runs</summary>" + table(head, rows) + "</details>"


def draw_pictures(folder, report):
    for section in report["sections"]:
        module = importlib.import_module("uper_plots.figures." + section["figure"].replace("-", "_"))
        style.save(module.draw(folder / section["folder"]), folder / section["folder"])
    save_png(draw_profiles(folder, report), folder / "profiles.png")
    save_png(draw_intervals(folder, report), folder / "aggregates.png")


def counted(count, what):
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def page(folder, report):
    seeds = ", ".join(map(str, report["seeds"]))
    summary = (f"{counted(report['runs'], 'run')} on {html.escape(scores.suite(report))}: "
               f"{counted(len(report['agents']), 'agent')}, "
               f"{counted(len(report['games']), 'game')}, seeds {seeds}; scores at {report['frames']:,} frames, "
               f"smoothed over {report['window']} evaluations. Unit: {scores.unit(report)}.")
    links = "".join(f'<a href="#{section["folder"]}">{HEADINGS[section["folder"]][0]}</a>'
                    for section in report["sections"])
    folders = ", ".join(f"<code>{section['folder']}/data.csv</code>" for section in report["sections"])
    files = ", ".join(f"<code>{name}</code>" for name in CSV_FILES) + ", " + folders
    parts = {
        "SUMMARY": summary,
        "LINKS": links,
        "MISSING": missing_section(folder, report),
        "AGGREGATES": picture(folder / "aggregates.png", "Aggregates with intervals")
                      + aggregates_section(folder, report),
        "COMPARISONS": comparisons_section(folder) + subsets_section(folder),
        "PROFILES": picture(folder / "profiles.png", "Performance profiles"),
        "FIGURES": "\n".join(figure_section(folder, section) for section in report["sections"]),
        "GAMES": games_section(folder, report),
        "RUNS": runs_section(folder),
        "FILES": files,
    }
    text = TEMPLATE.read_text()
    for name, content in parts.items():
        text = text.replace("{{" + name + "}}", content)
    return text


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    report = json.loads((folder / "report.json").read_text())
    style.use_style()
    draw_pictures(folder, report)
    temporary = folder / f".report.{os.getpid()}.html"
    temporary.write_text(page(folder, report))
    os.replace(temporary, folder / "report.html")


if __name__ == "__main__":
    main()
