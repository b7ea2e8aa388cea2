"""bias-error: squared error of the biased probabilities against the bias C, mean and s.d."""

from pathlib import Path

import matplotlib.pyplot as plt

from uper_plots import style
from uper_plots.figures.bias_entropy import FORMS, axis_with_data, form_legend, panel_titles

# Tops of the paper's axes for mean and standard deviation. They start at 0. An axis grows if the data
# do not fit.
ERROR_AXES = {
    "a": (3.5e-11, 7e-11),
    "b": (7e-11, 2.2e-10),
    "c": (3.4e-11, 3.3e-11),
    "d": (3.4e-11, 7e-11),
    "e": (1.1e-10, 7.5e-10),
    "f": (1.1e-10, 7.5e-10),
    "g": (0.8e-10, 8e-10),
    "h": (1.1e-10, 6.5e-10),
}


def draw_curves(axis, table, uniform, column, panel, top):
    largest = 0
    for form, (_, color) in FORMS.items():
        bias, error = style.by_seed(table, column, "bias", panel=panel, form=form)
        axis.plot(bias, error.mean(axis=0), color=color, linewidth=1.5)
        axis.fill_between(
            bias, error.min(axis=0), error.max(axis=0), color=color, alpha=0.3, linewidth=0
        )
        largest = max(largest, error.max())
    level = uniform[column][uniform["panel"] == panel].mean()
    axis.axhline(level, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axis.set_ylim(axis_with_data((0, top), 0, max(largest, level)))
    axis.set_xlim(bias[0], bias[-1])
    axis.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=True)
    axis.yaxis.get_offset_text().set_fontsize(7)
    axis.tick_params(labelsize=7.5)


def draw(folder):
    table = style.read_columns(Path(folder) / "data.csv", text=("panel", "form"))
    uniform = style.read_columns(Path(folder) / "uniform.csv", text=("panel",))
    titles, _ = panel_titles(folder)
    figure, axes = plt.subplots(4, 4, figsize=(11, 8.6), sharex=True, layout="constrained")
    for position, (panel, title) in enumerate(titles.items()):
        row, column = 2 * (position // 4), position % 4
        mean_axis, sd_axis = axes[row, column], axes[row + 1, column]
        draw_curves(mean_axis, table, uniform, "error_mean", panel, ERROR_AXES[panel][0])
        draw_curves(sd_axis, table, uniform, "error_sd", panel, ERROR_AXES[panel][1])
        mean_axis.set_title(f"({panel})  {title}", fontsize=9, pad=12)
        if column == 0:
            mean_axis.set_ylabel("mean")
            sd_axis.set_ylabel("standard deviation")
    for axis in axes[-1]:
        axis.set_xlabel("Bias, $C$")
    figure.supylabel(
        r"Squared error of the probabilities, $(p_i - p_i^*)^2$  (dotted: uniform sampling)",
        fontsize=10,
    )
    form_legend(figure)
    return figure
