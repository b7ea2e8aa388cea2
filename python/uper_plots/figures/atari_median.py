"""Median over games against frames, and up to four single games."""

from pathlib import Path

from uper_plots import scores
from uper_plots.style import plt


def draw_main(axes, folder, information, data):
    scores.draw_median(axes, data, information["agents"])
    scores.draw_published(axes, scores.read(folder / "published.csv"), "")
    scores.prepare(axes, f"median over {len(information['games'])} "
                         f"game{'s' if len(information['games']) > 1 else ''} of {scores.suite(information)}")
    axes.set_xlabel("frames")
    axes.set_ylabel(scores.unit(information))


def draw(folder):
    folder = Path(folder)
    information = scores.about(folder)
    data = scores.read(folder / "data.csv")
    enlarged = information["enlarged"][:4]
    if not enlarged:
        figure, axes = plt.subplots(figsize=(6.5, 4.4), layout="constrained")
        draw_main(axes, folder, information, data)
        scores.legend_below(figure, [axes])
        return figure
    rows = 1 if len(enlarged) <= 2 else 2
    figure = plt.figure(figsize=(10.5, 4.8), layout="constrained")
    columns = (len(enlarged) + rows - 1) // rows
    grid = figure.add_gridspec(rows, columns + 2)
    main = figure.add_subplot(grid[:, :2])
    draw_main(main, folder, information, data)
    games, published = scores.read(folder / "games.csv"), scores.read(folder / "published.csv")
    every = [main]
    for index, game in enumerate(enlarged):
        axes = figure.add_subplot(grid[index // columns, 2 + index % columns])
        scores.draw_game(axes, games, published, game, information["agents"])
        every.append(axes)
    figure.suptitle(scores.subtitle(information, "mean over seeds"), fontsize=8, color="#666666")
    scores.legend_below(figure, every)
    return figure
