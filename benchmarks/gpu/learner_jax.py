"""learner_jax.py [--actions N] [--repeats R]: one ensemble quantile update in JAX, jitted, on a GPU.

The same work as `uper bench learner --agent qr-ens-uper --network nature --device cuda`: target,
loss, gradient, clipping, Adam, TD error and uncertainties; batch 32, 10 members x 201 quantiles, plain
fp32, the batch in the GPU's memory. All actions go through the head; what becomes of the pairs of
quantiles is left to the compiler. Prints one JSON object.
"""

import argparse
import functools
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_default_matmul_precision", "highest")
BATCH, MEMBERS, QUANTILES, HIDDEN = 32, 10, 201, 512
DISCOUNT, RATE, BETA1, BETA2, EPSILON, MAX_NORM = 0.99, 5e-5, 0.9, 0.999, 9.765625e-6, 10.0
CONVOLUTIONS = [(8, 4, 4, 32), (4, 2, 32, 64), (3, 1, 64, 64)]  # kernel, stride, channels, filters


def make_parameters(actions, seed):
    random = np.random.default_rng(seed)

    def uniform(shape, fan_in):
        return jnp.asarray(random.uniform(-1, 1, shape) / np.sqrt(fan_in), jnp.float32)

    parameters = {}
    for i, (kernel, _, channels, filters) in enumerate(CONVOLUTIONS):
        fan_in = kernel * kernel * channels
        parameters[f"conv{i}"] = (uniform((kernel, kernel, channels, filters), fan_in),
                                  uniform((filters,), fan_in))
    parameters["hidden"] = (uniform((3136, HIDDEN), 3136), uniform((HIDDEN,), 3136))
    parameters["head"] = (uniform((actions, MEMBERS, HIDDEN, QUANTILES), HIDDEN),
                          uniform((actions, MEMBERS, QUANTILES), HIDDEN))
    return parameters


def hidden_of(parameters, pixels):
    x = pixels.astype(jnp.float32) / 255
    for i, (_, stride, _, _) in enumerate(CONVOLUTIONS):
        weights, bias = parameters[f"conv{i}"]
        x = jax.lax.conv_general_dilated(x, weights, (stride, stride), "VALID",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jax.nn.relu(x + bias)
    weights, bias = parameters["hidden"]
    return jax.nn.relu(x.reshape(x.shape[0], -1) @ weights + bias)


def all_outputs(parameters, hidden):
    """[batch, action, member, quantile]."""
    weights, bias = parameters["head"]
    return jnp.einsum("bh,akhm->bakm", hidden, weights) + bias


def loss_of(online, targets, batch):
    hidden = hidden_of(online, batch["s_tm1"])
    outputs = all_outputs(online, hidden)
    theta = jnp.take_along_axis(outputs, batch["a_tm1"][:, None, None, None], 1)[:, 0]
    tau = (jnp.arange(QUANTILES) + 0.5) / QUANTILES
    u = targets[:, :, None, :] - theta[:, :, :, None]
    huber = jnp.where(jnp.abs(u) <= 1, 0.5 * u * u, jnp.abs(u) - 0.5)
    losses = (jnp.abs(tau[:, None] - (jax.lax.stop_gradient(u) < 0)) * huber).mean(3).sum(2)
    terms = jnp.maximum(1, batch["masks"].sum())
    return (batch["weights"][:, None] * batch["masks"] * losses).sum() / terms, theta


def statistics(theta, targets):
    gap = targets.mean(2) - theta.mean(2)
    shape = theta - theta.mean(1, keepdims=True)
    epistemic_delta = (targets.var(2).mean(1) + (gap**2).mean(1)
                       + (shape - shape.mean(2, keepdims=True)).__pow__(2).mean((1, 2)))
    return (jnp.abs(gap).mean(1), theta.var(1).mean(1), theta.mean(1).var(1), epistemic_delta)


@functools.partial(jax.jit, donate_argnums=(0, 2, 3))
def update(online, target, first, second, step, batch):
    outputs = all_outputs(target, hidden_of(target, batch["s_t"]))
    greedy = outputs.mean(3).argmax(1)
    chosen = jnp.take_along_axis(outputs, greedy[:, None, :, None], 1)[:, 0]
    targets = batch["r_t"][:, None, None] + batch["discount_t"][:, None, None] * chosen
    (loss, theta), gradient = jax.value_and_grad(loss_of, has_aux=True)(online, targets, batch)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    scale = jnp.where(norm >= MAX_NORM, MAX_NORM / norm, 1.0)
    step = step + 1
    first = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g * scale, first, gradient)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * (g * scale)**2, second, gradient)
    rate = RATE / (1 - BETA1**step)
    root = 1 / jnp.sqrt(1 - BETA2**step)
    online = jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) * root + EPSILON), online,
                          first, second)
    return online, first, second, step, (loss, norm, *statistics(theta, targets))


def make_batch(actions):
    random = np.random.default_rng(3)
    return {"s_tm1": jnp.asarray(random.integers(0, 256, (BATCH, 84, 84, 4)), jnp.uint8),
            "s_t": jnp.asarray(random.integers(0, 256, (BATCH, 84, 84, 4)), jnp.uint8),
            "a_tm1": jnp.asarray(random.integers(0, actions, BATCH)),
            "r_t": jnp.asarray(random.uniform(size=BATCH), jnp.float32),
            "discount_t": jnp.full(BATCH, DISCOUNT, jnp.float32),
            "weights": jnp.asarray(random.uniform(size=BATCH), jnp.float32),
            "masks": jnp.asarray(random.integers(0, 2, (BATCH, MEMBERS)), jnp.float32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    online, target = make_parameters(arguments.actions, 1), make_parameters(arguments.actions, 2)
    first = jax.tree.map(jnp.zeros_like, online)
    second = jax.tree.map(jnp.zeros_like, online)
    step, batch = jnp.float32(0), make_batch(arguments.actions)
    times = []
    for repeat in range(arguments.repeats + 1):  # the first one compiles
        calls = 300
        start = time.perf_counter()
        for _ in range(calls):
            online, first, second, step, found = update(online, target, first, second, step, batch)
        jax.block_until_ready((online, found))
        times.append((time.perf_counter() - start) * 1e3 / calls)
    times = sorted(times[1:])
    print(json.dumps({"name": f"JAX {jax.__version__} jit", "actions": arguments.actions,
                      "device": jax.devices()[0].device_kind, "loss": float(found[0]),
                      "update_ms": {"median": times[len(times) // 2], "low": times[0],
                                    "high": times[-1]}}))


if __name__ == "__main__":
    main()
