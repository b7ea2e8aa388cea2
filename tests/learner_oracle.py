"""Computes the arrays of `uper dump-step` again: float64, gradients by JAX, everything by definition.

Written from the formulas, not from the program: every action's outputs are computed before one is
chosen, quantiles are compared pair by pair, distributions are projected by the triangle kernel, and
nothing uses a closed form. Only the .npz file is read; its `settings` say which formulas apply.

    python tests/learner_oracle.py FILE.npz     prints the largest error of each array
"""

import functools
import json
import os
import sys
from dataclasses import dataclass

# Each function runs a few times: compiling it is what takes time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


class Dump:
    """The arrays of a file; those of an update have a leading axis [update], also for one."""

    def __init__(self, path):
        with np.load(path) as file:
            self.arrays = {name: file[name] for name in file.files}
        self.settings = json.loads(str(self.arrays["settings"]))
        self.updates = self.settings["updates"]

    def parameters(self, group):
        """`online`, `target` or `after`, in float64."""
        return self._group(group)

    def of_update(self, name, update):
        values = self.arrays[name]
        return values[update] if self.updates > 1 else values

    def gradient(self, update):
        return {name: array[update] if self.updates > 1 else array
                for name, array in self._group("gradient").items()}

    def batch(self, update):
        names = ("observation", "action", "reward", "discount", "next_observation", "weight",
                 "mask")
        batch = {name: self.of_update(name, update) for name in names}
        return {name: array if array.dtype.kind == "i" else array.astype(np.float64)
                for name, array in batch.items()}

    def _group(self, group):
        prefix = group + "/"
        return {name.removeprefix(prefix): array.astype(np.float64)
                for name, array in self.arrays.items() if name.startswith(prefix)}


# The network.


def parameter_shapes(settings):
    """The shapes by the settings: a broadcast would hide a tensor that is too small."""
    network = settings["network"]
    height, width, channels = (network["input"][key] for key in ("height", "width", "channels"))
    actions, members, outputs = (settings[key] for key in ("actions", "members", "outputs"))
    units = network["hidden_units"]
    shapes = {}
    for layer in network["layers"]:
        inputs = height * width * channels  # of a layer that is no convolution
        if layer["kind"] == "convolution":
            kernel, stride, filters = layer["kernel"], layer["stride"], layer["filters"]
            weights, bias = (kernel, kernel, channels, filters), (filters,)
            height, width = ((side - kernel) // stride + 1 for side in (height, width))
            channels = filters
        elif layer["kind"] == "head":
            weights = (actions, members, units, outputs)
            bias = (1,) if network["shared_output_bias"] else (actions, members, outputs)
        else:
            bias = (layer["outputs"],)
            if layer["kind"] == "hidden":
                bias = (members, units) if network["separate_hidden"] else (units,)
            weights = (inputs, *bias)
            height, width, channels = 1, 1, int(np.prod(bias))
        shapes[layer["name"] + "/w"], shapes[layer["name"] + "/b"] = weights, bias
    return shapes


def outputs_of_all_actions(settings, parameters, observation):
    """[batch, action, member, output]."""
    network = settings["network"]
    x = jnp.asarray(observation) * network["input"]["scale"]
    if network["input"]["layout"] == "channel, height, width":
        x = jnp.transpose(x, (0, 2, 3, 1))
    for layer in network["layers"]:
        w, b = parameters[layer["name"] + "/w"], parameters[layer["name"] + "/b"]
        if layer["kind"] == "convolution":
            stride = (layer["stride"], layer["stride"])
            x = jax.lax.conv_general_dilated(x, w, stride, "VALID",
                                             dimension_numbers=("NHWC", "HWIO", "NHWC"))
            x = jax.nn.relu(x + b)
        elif layer["kind"] == "head":
            separate = network["separate_hidden"]
            return jnp.einsum("bku,akum->bakm" if separate else "bu,akum->bakm", x, w) + b
        else:  # w [input, unit], or [input, member, unit] for separate hidden layers
            x = jax.nn.relu(jnp.tensordot(x.reshape(x.shape[0], -1), w, 1) + b)
    raise ValueError("the settings have no head")


def atoms_of(settings):
    atoms = settings["head"]["atoms"]
    return np.linspace(atoms["low"], atoms["high"], atoms["count"])


def values(settings, outputs):
    """Q[...] of outputs [..., output]."""
    if settings["head"]["kind"] == "categorical":
        return jax.nn.softmax(outputs) @ atoms_of(settings)
    return outputs.mean(-1)


def target_outputs(settings, online, target, next_observation):
    """theta'(s_t, a*) [batch, member, output], a* each member's greedy action or the mean's."""
    of_target = outputs_of_all_actions(settings, target, next_observation)
    chooser = of_target
    if settings["head"]["double_q"]:
        chooser = outputs_of_all_actions(settings, online, next_observation)
    q = values(settings, chooser)  # [batch, action, member]
    if settings["head"]["target_rule"] == "ensemble":
        q = jnp.broadcast_to(q.mean(-1, keepdims=True), q.shape)
    greedy = q.argmax(1)  # [batch, member]
    return jnp.take_along_axis(of_target, greedy[:, None, :, None], 1)[:, 0]


# Losses [batch, member], without weight and mask.


def quantile_huber(kappa, online, targets):
    m = online.shape[-1]
    tau = (2 * jnp.arange(m) + 1) / (2 * m)
    u = targets[..., None, :] - online[..., :, None]  # [..., online, target]
    size = jnp.abs(u)
    huber = size if kappa == 0 else jnp.where(size <= kappa, u**2 / 2, kappa * (size - kappa / 2))
    return (jnp.abs(tau[:, None] - (u < 0)) * huber).mean(-1).sum(-1)


def project(atoms, probabilities, reward, discount):
    """Triangle kernel: an atom's mass goes to atoms less than a spacing away."""
    spacing = atoms[1] - atoms[0]
    moved = jnp.clip(reward[..., None] + discount[..., None] * atoms, atoms[0], atoms[-1])
    kernel = jnp.clip(1 - jnp.abs(moved[..., None, :] - atoms[:, None]) / spacing, 0, 1)
    return (kernel * probabilities[..., None, :]).sum(-1)


def member_losses(settings, online, target, reward, discount):
    head = settings["head"]
    reward, discount = reward[:, None], discount[:, None]
    if head["kind"] == "categorical":
        projected = project(atoms_of(settings), jax.nn.softmax(target), reward, discount)
        return -(projected * jax.nn.log_softmax(online)).sum(-1)
    targets = reward[..., None] + discount[..., None] * target
    if head["kind"] == "quantile":
        return quantile_huber(head["huber_kappa"], online, targets)
    return (targets - online)[..., 0] ** 2 / 2


def objective(settings, parameters, target, batch):
    """The number whose gradient the optimizer takes, and the values that the statistics need."""
    head = settings["head"]
    everything = outputs_of_all_actions(settings, parameters, batch["observation"])
    online = everything[jnp.arange(everything.shape[0]), batch["action"]]
    member_loss = member_losses(settings, online, target, batch["reward"], batch["discount"])
    mask = batch["mask"]
    terms = mask.shape[0] if head["member_weighting"] == "sum" else jnp.maximum(1, mask.sum())
    loss = (batch["weight"][:, None] * mask * member_loss).sum() / terms
    found = {"loss": loss, "online": online, "target": target, "member_loss": member_loss}
    if head["kind"] != "scalar" or head["td_gradient_bound"] == 0:
        return loss, found
    # DQN Zoo: weight * delta is clipped on its way back.
    bound = head["td_gradient_bound"]
    delta = (batch["reward"] + batch["discount"] * target[..., 0].T).T - online[..., 0]
    slope = -jnp.clip(batch["weight"][:, None] * delta, -bound, bound)
    return (jax.lax.stop_gradient(slope) * mask * online[..., 0]).sum() / terms, found


# Statistics, in numpy.


@dataclass
class Uncertainty:
    """Arrays [batch]."""

    epistemic: np.ndarray
    aleatoric: np.ndarray
    target_distance_sq: np.ndarray
    total_delta: np.ndarray

    @property
    def total(self):
        return self.epistemic + self.aleatoric

    @property
    def epistemic_delta(self):
        return self.total_delta - self.aleatoric


def quantile_uncertainty(settings, theta, targets):
    """theta, targets: [batch, member, quantile]; targets contain reward and discount."""
    epistemic = theta.var(1).mean(-1)
    aleatoric = theta.mean(1).var(-1)
    mean_target = targets.mean((1, 2))
    if settings["priority"]["target_form"] == "scalar":
        total_delta = ((mean_target[:, None, None] - theta) ** 2).mean((1, 2))
    else:
        pairs = targets[..., None, :] - theta[..., :, None]
        total_delta = (pairs**2).mean((1, 2, 3))
    distance_sq = (mean_target - theta.mean((1, 2))) ** 2
    return Uncertainty(epistemic, aleatoric, distance_sq, total_delta)


def categorical_quantiles(atoms, probabilities):
    """The inverse of the cumulative probabilities at the midpoints, linear between atoms."""
    count = len(atoms)
    tau = (2 * np.arange(count) + 1) / (2 * count)
    rows = probabilities.reshape(-1, count)
    quantiles = [np.interp(tau, np.cumsum(row), atoms) for row in rows]
    return np.array(quantiles).reshape(probabilities.shape)


def categorical_uncertainty(settings, online, target, reward, discount):
    """online, target: probabilities [batch, member, atom]."""
    atoms = atoms_of(settings)
    rule = settings["priority"]["categorical_uncertainty"]
    if rule == "quantile":
        targets = reward + discount * categorical_quantiles(atoms, target)
        return quantile_uncertainty(settings, categorical_quantiles(atoms, online), targets)
    q = online @ atoms  # [batch, member]
    mean_target = (reward[..., 0] + discount[..., 0] * (target @ atoms)).mean(1)
    if rule == "total_variance":
        epistemic = q.var(1)
        aleatoric = (online * (atoms - q[..., None]) ** 2).sum(-1).mean(1)
    else:
        products = online * atoms
        epistemic = products.var(1).mean(-1)
        aleatoric = products.mean(1).var(-1)
    distance_sq = (mean_target - q.mean(1)) ** 2
    return Uncertainty(epistemic, aleatoric, distance_sq, distance_sq + epistemic + aleatoric)


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def uncertainty_of(settings, found, batch):
    reward, discount = batch["reward"][:, None, None], batch["discount"][:, None, None]
    if settings["head"]["kind"] == "categorical":
        return categorical_uncertainty(settings, softmax(found["online"]), softmax(found["target"]),
                                       reward, discount)
    return quantile_uncertainty(settings, found["online"], reward + discount * found["target"])


def td_error_of(settings, found, batch):
    if settings["priority"]["td_priority"] == "loss":
        loss = found["member_loss"].mean(1)
        cap = settings["priority"]["td_priority_categorical_cap"]
        return np.minimum(loss, cap) if settings["head"]["kind"] == "categorical" else loss
    next_value = np.asarray(values(settings, found["target"]))
    target = batch["reward"][:, None] + batch["discount"][:, None] * next_value
    return np.abs(target - np.asarray(values(settings, found["online"]))).mean(1)


def priority_of(settings, uncertainty, td_error):
    rule = settings["priority"]["rule"]
    name = rule.removesuffix("_delta")
    epistemic = uncertainty.epistemic_delta if rule.endswith("_delta") else uncertainty.epistemic
    noise = uncertainty.aleatoric + settings["priority"]["aleatoric_floor"]
    total = uncertainty.total_delta if rule.endswith("_delta") else uncertainty.total
    formulas = {
        "uniform": lambda: np.ones_like(td_error),
        "td": lambda: td_error,
        "total": lambda: total,
        "epistemic": lambda: epistemic,
        "info_gain": lambda: np.log(1 + epistemic / noise) / 2,
        "ratio_ea": lambda: epistemic / noise,
        "ratio_eu": lambda: epistemic / (epistemic + noise),
        "ratio_e2u": lambda: epistemic**2 / (epistemic + noise),
        "ratio_e3u": lambda: epistemic**3 / (epistemic + noise),
    }
    return np.minimum(formulas[name](), settings["priority"]["cap"])


# The optimizer.


class Optimizer:
    """Clip by the global norm, then Adam or centered RMSProp, on a dictionary of arrays."""

    def __init__(self, settings, parameters):
        self.settings = settings["optimizer"]
        self.m = {name: np.zeros_like(array) for name, array in parameters.items()}
        self.v = {name: np.zeros_like(array) for name, array in parameters.items()}
        self.updates = 0

    def step(self, parameters, gradient):
        self.updates += 1
        bound = self.settings["max_global_norm"]
        norm = global_norm(gradient)
        scale = bound / norm if bound > 0 and norm >= bound else 1
        return {name: array + self._change(name, scale * gradient[name])
                for name, array in parameters.items()}

    def _change(self, name, g):
        s = self.settings
        adam = s["rule"] == "adam"
        decay_m, decay_v = (s["beta1"], s["beta2"]) if adam else (s["decay"], s["decay"])
        m = self.m[name] = decay_m * self.m[name] + (1 - decay_m) * g
        v = self.v[name] = decay_v * self.v[name] + (1 - decay_v) * g**2
        if adam:
            m_hat, v_hat = m / (1 - decay_m**self.updates), v / (1 - decay_v**self.updates)
            return -s["learning_rate"] * m_hat / (np.sqrt(v_hat) + s["epsilon"])
        variance = np.maximum(v - m**2, 0)
        inside = s["epsilon_placement"] == "inside"
        root = (np.sqrt(variance + s["epsilon"]) if inside else np.sqrt(variance) + s["epsilon"])
        return -s["learning_rate"] * g / root


def global_norm(gradient):
    return np.sqrt(sum((array**2).sum() for array in gradient.values()))


# The whole of it.


@functools.lru_cache
def compiled(settings_text):
    """The two functions of the networks, for settings as JSON; compiling takes a second."""
    settings = json.loads(settings_text)
    choose = jax.jit(functools.partial(target_outputs, settings))
    differentiate = jax.jit(jax.grad(functools.partial(objective, settings), has_aux=True))
    return choose, differentiate


def compiled_for(settings):
    head = {key: value for key, value in settings["head"].items()
            if key not in ("discount", "mask_probability")}  # the batch has them
    return compiled(json.dumps({"network": settings["network"], "head": head}))


def statistics(settings, found, batch):
    uncertainty = uncertainty_of(settings, found, batch)
    td_error = td_error_of(settings, found, batch)
    return {"td_error": td_error, "epistemic": uncertainty.epistemic,
            "aleatoric": uncertainty.aleatoric,
            "target_distance_sq": uncertainty.target_distance_sq,
            "priority": priority_of(settings, uncertainty, td_error)}


def replay(dump):
    """Repeats the updates with parameters of its own.

    Returns one dictionary per update, named as the file's arrays, and the parameters at the end.
    """
    settings = dump.settings
    choose, differentiate = compiled_for(settings)
    online, target = dump.parameters("online"), dump.parameters("target")
    for parameters in (online, target, dump.parameters("after")):
        shapes = {name: array.shape for name, array in parameters.items()}
        assert shapes == parameter_shapes(settings)
    optimizer = Optimizer(settings, online)
    steps = []
    for update in range(dump.updates):
        batch = dump.batch(update)
        targets = choose(online, target, batch["next_observation"])
        gradient, found = differentiate(online, targets, batch)
        gradient = {name: np.asarray(array) for name, array in gradient.items()}
        found = {name: np.asarray(array) for name, array in found.items()}
        step = {"loss": found["loss"], "gradient_norm": global_norm(gradient)}
        step.update(statistics(settings, found, batch))
        step.update({"gradient/" + name: array for name, array in gradient.items()})
        steps.append(step)
        online = optimizer.step(online, gradient)
    return steps, online


def relative_error(actual, expected):
    """The largest difference, as a share of the largest entry of `expected` (NaN are left out)."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected)
    assert actual.shape == expected.shape and np.isfinite(actual).all()
    difference = np.nanmax(np.abs(actual - expected))
    largest = np.nanmax(np.abs(expected))
    return float(difference / largest if largest > 0 else difference)


def step_errors(dump, steps, update):
    """Of every array of one update."""
    return {name: relative_error(dump.of_update(name, update), expected)
            for name, expected in steps[update].items()}


def parameter_errors(dump, after):
    """The error of each tensor of the parameters at the end."""
    return {"after/" + name: relative_error(array, after[name])
            for name, array in dump.parameters("after").items()}


def optimizer_errors(dump):
    """The same if the optimizer is given the gradients in the file instead of the oracle's."""
    parameters = dump.parameters("online")
    optimizer = Optimizer(dump.settings, parameters)
    for update in range(dump.updates):
        parameters = optimizer.step(parameters, dump.gradient(update))
    return parameter_errors(dump, parameters)


def determined(steps, after, tolerance):
    """`after`, with NaN for the parameters whose first step is not determined.

    Adam divides a first gradient by its own size: an entry below the gradient's tolerance may move
    by the learning rate in either direction.
    """
    kept = {}
    for name, array in after.items():
        size = np.abs(steps[0]["gradient/" + name])
        kept[name] = np.where((size > tolerance * size.max()) | (size == 0), array, np.nan)
    return kept


def change_errors(dump, after):
    """L2 norm of what the parameters are off by, as a share of their change, of each tensor."""
    before = dump.parameters("online")
    return {name: float(np.linalg.norm(array - after[name]) /
                        np.linalg.norm(after[name] - before[name]))
            for name, array in dump.parameters("after").items()}


def main(path):
    dump = Dump(path)
    steps, after = replay(dump)
    for update in range(dump.updates):
        for name, error in step_errors(dump, steps, update).items():
            print(f"{update} {name:24} {error:.1e}")
    for name, error in parameter_errors(dump, after).items():
        print(f"- {name:24} {error:.1e}")
    for name, error in change_errors(dump, after).items():
        print(f"- change of {name:14} {error:.1e}")


if __name__ == "__main__":
    main(sys.argv[1])
