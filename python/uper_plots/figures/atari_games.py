"""One panel per game."""

from pathlib import Path

from uper_plots import scores
from uper_plots.style import plt


def shape(count):
    """(rows, columns) of the grid."""
    columns = min(count, 5 if count <= 5 else 3 if count <= 9 else 5 if count <= 20 else 10)
    return (count + columns - 1) // columns, columns


def draw(folder):
    folder = Path(folder)
    information = scores.about(folder)
    data, published = scores.read(folder / "data.csv"), scores.read(folder / "published.csv")
    games = sorted(set(data["game"]))
    rows, columns = shape(len(games))
    wide = {10: 1.9, 5: 2.5, 4: 2.8}.get(columns, 3.2)
    figure, axes = plt.subplots(rows, columns, figsize=(max(wide * columns, 5), 0.72 * wide * rows + 0.9),
                                squeeze=False, sharex=True, layout="constrained")
    for one, game in zip(axes.flat, games):
        scores.draw_game(one, data, published, game, information["agents"])
    for one in axes.flat[len(games):]:
        one.set_visible(False)
    for column in range(columns):
        lowest = axes[(len(games) - 1 - column) // columns, column]
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel("frames")
    figure.supylabel(scores.unit(information), fontsize=9)
    figure.suptitle(scores.subtitle(information, "mean over seeds"), fontsize=8, color="#666666")
    scores.legend_below(figure, axes.flat[:len(games)])
    return figure
