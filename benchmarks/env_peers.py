"""env_peers.py SETTINGS: times the vectorized Atari environments that Python has.

Called by `uper bench env`; SETTINGS is JSON: game, threads, environments, seconds, repeats. Prints a
JSON list of {name, frames_per_second: {median, low, high}}: raw frames of all environments that step
together under random actions, with 84x84 gray observations, a stack of 4 and an action repeat of 4.
It times one call per step, as their users write it.
"""

import importlib.metadata
import importlib.util
import json
import sys
import time

import numpy as np

ACTION_REPEAT = 4
WARM_UP_STEPS = 50
BATCHES = 256


def measure(settings, actions, step):
    """Frames per second of `step(actions)`, one measurement per repeat."""
    draws = np.random.default_rng(1).integers(actions, size=(BATCHES, settings["environments"]), dtype=np.int32)
    for number in range(WARM_UP_STEPS):
        step(draws[number % BATCHES])
    values = []
    for _ in range(settings["repeats"]):
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < settings["seconds"]:
            step(draws[steps % BATCHES])
            steps += 1
        values.append(steps * settings["environments"] * ACTION_REPEAT / elapsed)
    values.sort()
    return {"median": values[len(values) // 2], "low": values[0], "high": values[-1]}


def camel_case(game):
    return "".join(word.capitalize() for word in game.split("_"))


def time_envpool(settings):
    import envpool

    environments = envpool.make(f"{camel_case(settings['game'])}-v5", env_type="gymnasium",
                                num_envs=settings["environments"], num_threads=settings["threads"], seed=1)
    environments.reset()
    return measure(settings, environments.action_space.n, environments.step)


def time_ale_vector(settings):
    from ale_py.vector_env import AtariVectorEnv

    environments = AtariVectorEnv(settings["game"], num_envs=settings["environments"],
                                  num_threads=settings["threads"])
    environments.reset(seed=1)
    return measure(settings, environments.single_action_space.n, environments.step)


def main():
    settings = json.loads(sys.argv[1])
    results = []
    for package, modules, name, timed in (("envpool", ["envpool"], "EnvPool", time_envpool),
                                          ("ale-py", ["ale_py", "gymnasium"], "ALE vector", time_ale_vector)):
        missing = [module for module in modules if importlib.util.find_spec(module) is None]
        if missing:
            packages = " ".join(missing).replace("_", "-")
            print(f"{name} is left out: .venv/bin/pip install {packages}", file=sys.stderr)
            continue
        results.append({"name": f"{name} {importlib.metadata.version(package)}",
                        "frames_per_second": timed(settings)})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
