"""posterior: an ensemble of quantile regressors against the Bayesian posterior of the mean."""

from pathlib import Path
from statistics import NormalDist

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

from uper_plots import style

ENSEMBLE = "#2ca02c"
BAYES = "#1f77b4"
DATA = NormalDist(2, 1)  # the data distribution of the experiment


def gaussian(x, mean, variance):
    return np.exp(-((x - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)


def time_scale(table, seed):
    """Samples of the ensemble per sample of Bayes, until the means are first half way."""
    rows = table["seed"] == seed
    samples = table["samples"][rows]
    ensemble = samples[np.argmax(table["target_distance"][rows] <= 1)]
    bayes = samples[np.argmax(np.abs(table["bayes_mean"][rows] - DATA.mean) <= 1)]
    return ensemble / bayes


def draw_evolution(axis, table, seed, mean, variance, title):
    """Draws densities over time from purple to yellow, each scaled to height 1."""
    rows = table["seed"] == seed
    samples, means, variances = table["samples"][rows], table[mean][rows], table[variance][rows]
    x = np.linspace(-2.5, 3.5, 1500)
    positions = np.linspace(0, len(samples) - 1, 45).astype(int)
    colors = plt.get_cmap("viridis")(np.linspace(0, 1, len(positions)))
    for color, i in zip(colors, positions):
        curve = gaussian(x, means[i], variances[i])
        axis.plot(x, curve / curve.max(), color=color, linewidth=0.9)
    axis.axvline(DATA.mean, color="k", linestyle=":", linewidth=0.9)
    axis.set_title(title)
    axis.set_xlabel("mean of the data")
    axis.set_ylabel("density (scaled to height 1)")
    axis.set_ylim(0, 1.05)
    axis.set_xlim(-2.5, 3.5)
    steps = plt.cm.ScalarMappable(cmap="viridis", norm=LogNorm(1, samples[-1]))
    bar = axis.figure.colorbar(steps, ax=axis, fraction=0.05, pad=0.02)
    bar.set_label("samples", fontsize=7)
    bar.ax.tick_params(labelsize=6)


def draw_quantiles(axis, folder):
    table = style.read_columns(Path(folder) / "quantiles.csv")
    tau, estimate = style.by_seed(table, "estimate", "tau")
    x = np.linspace(-1.5, 5.5, 400)
    axis.fill_between(x, gaussian(x, DATA.mean, DATA.variance), color="0.85", label="data density")
    truth = style.by_seed(table, "truth", "tau")[1][0]
    fitted = estimate.mean(axis=0)
    axis.vlines(truth, 0, gaussian(truth, DATA.mean, 1), color=BAYES, linewidth=0.9, label="true")
    axis.vlines(
        fitted, -0.12, 0, color=ENSEMBLE, linewidth=0.9, label="fitted (mean over members, seeds)"
    )
    axis.set_ylim(-0.13, 0.6)
    axis.axhline(0, color="k", linewidth=0.6)
    axis.set_title(f"(c) fitted quantiles ({len(tau)})")
    axis.set_xlabel("data")
    axis.set_yticks([])
    axis.legend(loc="upper left", fontsize=7)


def band(axis, table, column, color, label, scale=1.0, linestyle="-"):
    """Draws the median over seeds with the 10-90 % band. Time is divided by `scale`."""
    samples, matrix = style.by_seed(table, column, "samples")
    chosen = samples > 0
    time = samples[chosen] * scale
    low, middle, high = np.percentile(matrix[:, chosen], [10, 50, 90], axis=0)
    axis.plot(time, middle, color=color, label=label, linestyle=linestyle)
    axis.fill_between(time, low, high, color=color, alpha=0.2, linewidth=0)


def draw_disagreement(axis, table, scale):
    band(axis, table, "epistemic", ENSEMBLE, r"$\hat{\mathcal{E}}$")
    band(axis, table, "means_variance", ENSEMBLE, "variance of the members' means", linestyle="--")
    band(axis, table, "bayes_variance", BAYES, r"posterior variance $\sigma_\nu^2$")
    band(axis, table, "bayes_variance", BAYES, f"the same, time x {scale:.0f}", scale, ":")
    axis.set_yscale("log")
    axis.set_title("(d) disagreement and posterior variance")
    axis.set_ylabel("variance")
    axis.legend(loc="lower left", fontsize=7)


def draw_distance(axis, table, scale):
    table["bayes_distance"] = np.abs(table["bayes_mean"] - DATA.mean)
    band(axis, table, "target_distance", ENSEMBLE, r"ensemble, $\delta_\Theta$")
    band(axis, table, "bayes_distance", BAYES, "posterior mean")
    band(axis, table, "bayes_distance", BAYES, f"the same, time x {scale:.0f}", scale, ":")
    axis.set_title("(e) distance to the true mean")
    axis.set_ylabel("distance")
    axis.legend(loc="upper right", fontsize=7)


def draw_aleatoric(axis, table, folder):
    band(axis, table, "aleatoric", ENSEMBLE, r"$\hat{\mathcal{A}}$")
    quantiles = style.read_columns(Path(folder) / "quantiles.csv")
    exact = quantiles["truth"][quantiles["seed"] == 1].var()
    axis.axhline(DATA.variance, color="k", linewidth=0.9, label=r"data variance $\sigma_x^2$")
    axis.axhline(
        exact, color="0.5", linewidth=0.9, linestyle="--", label="exact mid-point quantiles"
    )
    axis.set_ylim(bottom=0)
    axis.set_title("(f) aleatoric uncertainty")
    axis.set_ylabel("variance")
    axis.legend(loc="lower right", fontsize=7)


def draw(folder):
    table = style.read_columns(Path(folder) / "data.csv")
    scale = np.median([time_scale(table, seed) for seed in np.unique(table["seed"])])
    figure, axes = plt.subplots(2, 3, figsize=(12, 6.6), layout="constrained")
    draw_evolution(
        axes[0, 0], table, 1, "ensemble_mean", "means_variance", "(a) ensemble (members' means)"
    )
    draw_evolution(axes[0, 1], table, 1, "bayes_mean", "bayes_variance", "(b) Bayesian posterior")
    draw_quantiles(axes[0, 2], folder)
    draw_disagreement(axes[1, 0], table, scale)
    draw_distance(axes[1, 1], table, scale)
    draw_aleatoric(axes[1, 2], table, folder)
    for axis in axes[1]:
        axis.set_xscale("log")
        axis.set_xlim(1, table["samples"].max())
        axis.set_xlabel("samples")
    return figure
