"""Distinct means: error curves of both versions of each form, and their difference."""

from pathlib import Path

import matplotlib.pyplot as plt

from uper_plots import style
from uper_plots.figures import bandit_panels as panels


def draw_difference(axes, table):
    forms = [scheme for scheme in style.SCHEMES if scheme in set(table["form"])]
    for form in forms:
        x, matrix = style.by_seed(table, "difference", "iteration", form=form)
        mean, deviation = matrix.mean(axis=0), matrix.std(axis=0)
        axes.plot(x, mean, color=style.color(form), label=style.label(form))
        axes.fill_between(x, mean - deviation, mean + deviation, color=style.color(form), alpha=0.15,
                          linewidth=0)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_yscale("symlog", linthresh=1e-3)
    axes.set_xlabel("iteration (1000 updates)")
    axes.set_ylabel(r"MSE($\mathcal{E}$) - MSE($\mathcal{E}_\delta$)")
    axes.set_title("what the distance to the target adds (above 0: better)")
    axes.legend(loc="lower right", ncols=3)


def draw(folder):
    folder = Path(folder)
    mse = style.read_columns(folder / "mse.csv", text=("scheme",))
    schemes = panels.schemes_in(mse)
    figure, axes = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
    axes[1].sharey(axes[0])
    for panel, wanted, name in ((axes[0], False, r"$\mathcal{E}$"), (axes[1], True, r"$\mathcal{E}_\delta$")):
        panels.draw_mse(panel, mse, [s for s in schemes if s.endswith("_delta") == wanted])
        panel.set_title(f"shifted means, priorities made of {name}")
        panel.legend()
    draw_difference(axes[2], style.read_columns(folder / "difference.csv", text=("form",)))
    return figure
