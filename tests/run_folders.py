"""Writes run folders like those of `uper train`, with evaluations that a test chooses."""

import json
import re

from conftest import ROOT

COLUMNS = ("frames updates episodes train_return eval_return loss grad_norm epsilon beta frames_per_second "
           "priority_mean priority_max epistemic_mean aleatoric_mean target_distance_mean "
           "effective_sample_size").split()


def config_text(suite, agent, game, seed, frames, every, extra=""):
    """The agent's file of configs/ with the keys that a run adds."""
    text = (ROOT / "configs" / suite / f"{agent}.toml").read_text()
    text = re.sub(r"^(frames|evaluate_every_frames|log_every_frames) = .*\n", "", text, flags=re.M)
    text = text.replace("[agent]\n", f'[agent]\nname = "{agent}"\n')
    top = f"frames = {frames}\nseed = {seed}\nevaluate_every_frames = {every}\nlog_every_frames = {every}\n"
    return top + text + f'\n[environment]\nname = "{suite}/{game}"\n{extra}\n'


def metrics_text(returns, every):
    """Writes one row per evaluation. None is a row without an evaluation."""
    lines = [",".join(COLUMNS)]
    for index, value in enumerate(returns):
        row = {"frames": index * every, "updates": 0, "episodes": index, "eval_return": "" if value is None else value}
        lines.append(",".join(str(row.get(name, "")) for name in COLUMNS))
    return "\n".join(lines) + "\n"


def write_run(root, suite, agent, game, seed, returns, every=1000, finished=True, frames=None, extra=""):
    """Writes a run whose evaluation after i * every frames is returns[i]. Gives the folder."""
    reached = (len(returns) - 1) * every
    run = root / f"{suite}-{game}-{agent}-{seed}"
    (run / "checkpoints").mkdir(parents=True)
    (run / "config.toml").write_text(config_text(suite, agent, game, seed, frames or reached or every, every, extra))
    (run / "metrics.csv").write_text(metrics_text(returns, every))
    if finished:
        (run / "finished").write_text(f"{reached}\n")
        summary = {"agent": agent, "env": f"{suite}/{game}", "seed": seed, "frames": reached, "updates": 0,
                   "final_eval_return": returns[-1], "best_eval_return": max(value for value in returns if value is not None),
                   "wall_seconds": 1.0, "frames_per_second": 1.0}
        (run / "summary.json").write_text(json.dumps(summary))
    return run
