"""direct-variance: the TD(0) variance learner against the truth, and inside UPER's priority."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from uper_plots import style

SCHEMES = {
    "uniform": (style.label("uniform"), style.color("uniform")),
    "td": (style.label("td"), style.color("td")),
    "info_gain_delta": (r"UPER, quantiles' $\mathcal{A}$", style.color("info_gain_delta")),
    "info_gain_delta_direct": (r"UPER, direct $\mathcal{A}$", "#ff7f0e"),
}


def draw_learning(axis, table, group, index, names):
    """Draws one curve per group (arm, state): median over seeds, 10-90 % band, and the truth dashed."""
    groups = np.unique(table[group])
    colors = plt.get_cmap("viridis")(np.linspace(0, 0.9, len(groups)))
    for color, which in zip(colors, groups):
        time, variance = style.by_seed(table, "variance", index, **{group: which})
        shown = time > 0
        low, middle, high = np.percentile(variance[:, shown], [10, 50, 90], axis=0)
        axis.plot(time[shown], middle, color=color, label=names(int(which)))
        axis.fill_between(time[shown], low, high, color=color, alpha=0.2, linewidth=0)
        truth = table["true_variance"][table[group] == which][0]
        axis.axhline(truth, color=color, linestyle="--", linewidth=0.9)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel(index)
    axis.set_ylabel("variance (dashed: truth)")
    axis.set_xlim(1, time[-1])
    axis.legend(fontsize=7, loc=(0.7, 0.12))


def draw_mse(axis, folder):
    table = style.read_columns(Path(folder) / "mse.csv", text=("scheme",))
    for scheme, (label, color) in SCHEMES.items():
        iteration, mse = style.by_seed(table, "mse", "iteration", scheme=scheme)
        mean, sd = mse.mean(axis=0), mse.std(axis=0)
        axis.plot(iteration, mean, color=color, label=label)
        axis.fill_between(iteration, mean - sd, mean + sd, color=color, alpha=0.2, linewidth=0)
    axis.set_yscale("log")
    axis.set_xlim(0, iteration[-1])
    axis.set_xlabel("iterations (1000 steps)")
    axis.set_ylabel("true MSE")
    axis.set_title("(c) prioritized replay on the bandit")
    axis.legend(fontsize=7)


def draw_estimates(axis, folder):
    """Draws both estimates of each arm's variance at the end of UPER with the direct variance."""
    table = style.read_columns(Path(folder) / "bandit_arms.csv", text=("scheme",))
    rows = table["scheme"] == "info_gain_delta_direct"
    arms = np.unique(table["arm"][rows])
    kinds = (("direct", "#ff7f0e", -0.12), ("quantile", style.color("info_gain_delta"), 0.12))
    for column, color, shift in kinds:
        values = [table[column][rows & (table["arm"] == arm)] for arm in arms]
        means = [v.mean() for v in values]
        sds = [v.std() for v in values]
        axis.errorbar(arms + shift, means, yerr=sds, fmt="o", color=color, label=column, ms=4)
    truth = [table["true_variance"][rows & (table["arm"] == arm)][0] for arm in arms]
    axis.hlines(truth, arms - 0.35, arms + 0.35, color="k", linewidth=1, label="truth")
    axis.set_yscale("log")
    axis.set_xticks(arms)
    axis.set_xlabel("arm")
    axis.set_ylabel(r"$\mathcal{A}$ at the end")
    axis.set_title(r"(d) the two estimates of $\mathcal{A}$")
    axis.legend(fontsize=7)


def draw_shares(axis, folder):
    """Draws how often each scheme drew each arm over the whole run."""
    table = style.read_columns(Path(folder) / "bandit_arms.csv", text=("scheme",))
    for scheme, (_, color) in SCHEMES.items():
        arms, share = style.by_seed(table, "draw_share", "arm", scheme=scheme)
        mean, sd = share.mean(axis=0), share.std(axis=0)
        axis.errorbar(arms, mean, yerr=sd, color=color, marker="o", ms=3)
    axis.set_ylim(bottom=0)
    axis.set_xticks(arms)
    axis.set_xlabel("arm (noisier to the right)")
    axis.set_ylabel("share of all draws")
    axis.set_title("(e) what was replayed (colors as in c)")


def draw(folder):
    figure, axes = plt.subplots(1, 5, figsize=(17.5, 3.6), layout="constrained")
    arms = style.read_columns(Path(folder) / "arms.csv")
    draw_learning(axes[0], arms, "arm", "updates", lambda arm: f"arm {arm}")
    axes[0].set_title("(a) arms of the bandit")
    chain = style.read_columns(Path(folder) / "chain.csv")
    draw_learning(axes[1], chain, "state", "episodes", lambda state: f"state {state}")
    axes[1].set_title("(b) return of a Markov chain")
    draw_mse(axes[2], folder)
    draw_estimates(axes[3], folder)
    draw_shares(axes[4], folder)
    return figure
