"""bias-entropy: entropy of the priority distribution against the bias C, eight panels."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style

# Form -> (label, color), as in the paper.
FORMS = {
    "epistemic": (r"$\mathcal{E}$", "#1f77b4"),
    "ratio_eu": (r"$\mathcal{E}/\mathcal{U}$", "#ff7f0e"),
    "ratio_e2u": (r"$\mathcal{E}^2/\mathcal{U}$", "#2ca02c"),
    "ratio_e3u": (r"$\mathcal{E}^3/\mathcal{U}$", "#d62728"),
}

# The paper's entropy axes. An axis grows if the data do not fit.
ENTROPY_AXES = {
    "a": (10.95, 11.53),
    "b": (10.85, 11.53),
    "c": (11.0, 11.53),
    "d": (10.95, 11.5),
    "e": (10.6, 11.55),
    "f": (10.45, 11.5),
    "g": (10.65, 11.55),
    "h": (10.6, 11.5),
}


def density_name(family, scale):
    number = f"{scale:.4g}"
    return rf"$U(0,{number})$" if family == "uniform" else rf"$|\mathcal{{N}}(0,{number})|$"


def panel_titles(folder):
    """{panel: text with its two densities on two lines}, and the number of entries."""
    table = style.read_columns(
        Path(folder) / "panels.csv", text=("panel", "eta_family", "beta_family")
    )
    titles = {}
    for i, panel in enumerate(table["panel"]):
        eta = density_name(table["eta_family"][i], table["eta_scale"][i])
        beta = density_name(table["beta_family"][i], table["beta_scale"][i])
        titles[panel] = rf"$\rho_\eta=$ {eta}" + "\n" + rf"$\rho_\beta=$ {beta}"
    return titles, table["entries"][0]


def axis_with_data(axis, lowest, highest):
    """The limits of the paper's axis, moved outwards if it would hide data."""
    margin = 0.02 * (highest - lowest)
    low = axis[0] if lowest >= axis[0] else lowest - margin
    high = axis[1] if highest <= axis[1] else highest + margin
    return low, high


def form_legend(figure):
    handles = [
        plt.Line2D([], [], color=color, linewidth=2, label=name) for name, color in FORMS.values()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(FORMS), fontsize=11)


def draw(folder):
    table = style.read_columns(Path(folder) / "data.csv", text=("panel", "form"))
    titles, entries = panel_titles(folder)
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.2), sharex=True, layout="constrained")
    for axis, (panel, title) in zip(axes.flat, titles.items()):
        extremes = []
        for form, (_, color) in FORMS.items():
            bias, entropy = style.by_seed(table, "entropy", "bias", panel=panel, form=form)
            axis.plot(bias, entropy.mean(axis=0), color=color, linewidth=1.6)
            axis.fill_between(
                bias, entropy.min(axis=0), entropy.max(axis=0), color=color, alpha=0.3, linewidth=0
            )
            extremes += [entropy.min(), entropy.max()]
        axis.axhline(np.log(entries), color="0.6", linewidth=0.8, linestyle=":", zorder=0)
        axis.set_ylim(axis_with_data(ENTROPY_AXES[panel], min(extremes), max(extremes)))
        axis.set_xlim(bias[0], bias[-1])
        axis.set_title(title, fontsize=9)
        axis.set_title(f"({panel})", loc="left", fontstyle="italic")
    for axis in axes[-1]:
        axis.set_xlabel("Bias, $C$")
    figure.supylabel(r"Entropy, $H_p$  (dotted: $\ln N$)", fontsize=10)
    form_legend(figure)
    return figure
