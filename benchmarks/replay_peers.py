"""replay_peers.py ENTRIES BATCH REPEATS: times the prioritized replay memories that Python has.

Called by `uper bench replay`; prints a JSON list of {name, draw_ns, update_ns, insert_ns}, each
{median, low, high} in nanoseconds per item. These are times through the peers' public Python
interface, with the smallest observation they accept: what their users pay.
"""

import importlib.util
import itertools
import json
import sys
import time

import numpy as np

ALPHA, BETA = 0.6, 0.4
CALLS = 100
BATCHES = 1000


def measure(repeats, items_per_call, call):
    values = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        values.append((time.perf_counter() - start) * 1e9 / (CALLS * items_per_call))
    values.sort()
    return {"median": values[len(values) // 2], "low": values[0], "high": values[-1]}


def time_cpprb(entries, batch, repeats):
    import cpprb

    memory = cpprb.PrioritizedReplayBuffer(entries, {"x": {"shape": 1}}, alpha=ALPHA)
    generator = np.random.default_rng(1)
    filled, chunk = 0, 4096
    while filled < entries:
        count = min(chunk, entries - filled)
        memory.add(x=np.zeros((count, 1)), priorities=generator.random(count))
        filled += count
    # Other items in every call, as in training: else they would stay in the cache.
    items = itertools.cycle(generator.integers(entries, size=(BATCHES, batch)).astype(np.uint64))
    priorities = generator.random(batch)
    x = np.zeros((1, 1))
    return {
        "name": f"cpprb {cpprb.__version__} (Python)" if hasattr(cpprb, "__version__") else "cpprb (Python)",
        "draw_ns": measure(repeats, batch, lambda: memory.sample(batch, beta=BETA)),
        "update_ns": measure(repeats, batch, lambda: memory.update_priorities(next(items), priorities)),
        "insert_ns": measure(repeats, 1, lambda: memory.add(x=x)),
    }


def time_torchrl(entries, batch, repeats):
    import torch
    import torchrl
    from torchrl.data import LazyTensorStorage
    from torchrl.data.replay_buffers import PrioritizedSampler, TensorDictReplayBuffer
    from tensordict import TensorDict

    memory = TensorDictReplayBuffer(
        storage=LazyTensorStorage(entries),
        sampler=PrioritizedSampler(entries, alpha=ALPHA, beta=BETA),
        batch_size=batch,
    )
    memory.extend(TensorDict({"x": torch.zeros(entries, 1)}, batch_size=[entries]))
    memory.update_priority(torch.arange(entries), torch.rand(entries))
    items = itertools.cycle(torch.randint(entries, (BATCHES, batch)).unbind())
    priorities = torch.rand(batch)
    one = TensorDict({"x": torch.zeros(1)}, batch_size=[])
    return {
        "name": f"TorchRL {torchrl.__version__} (Python)",
        "draw_ns": measure(repeats, batch, memory.sample),
        "update_ns": measure(repeats, batch, lambda: memory.update_priority(next(items), priorities)),
        "insert_ns": measure(repeats, 1, lambda: memory.add(one)),
    }


def main():
    entries, batch, repeats = (int(text) for text in sys.argv[1:])
    results = []
    for module, timed in (("cpprb", time_cpprb), ("torchrl", time_torchrl)):
        if importlib.util.find_spec(module) is None:
            print(f"{module} is not installed: left out", file=sys.stderr)
        else:
            results.append(timed(entries, batch, repeats))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
