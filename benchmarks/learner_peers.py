"""learner_peers.py SETTINGS: times one learner update written the straightforward way in PyTorch.

Called by `uper bench learner` with the settings of the agent as JSON; prints a JSON list of
{name, update_ms: {median, low, high}}. The same work as ours: target, loss, gradient, optimizer
step, TD error and uncertainties of each sample. Eager mode, all actions through the head
and the quantile loss over all pairs of a prediction and a target, as textbooks and the usual
libraries write it. Random data; only the time matters.
"""

import importlib.util
import json
import sys
import time
from types import SimpleNamespace

import wait_policy

WARM_UP_CALLS = 3
LEAST_SECONDS = 0.2  # of one measurement


def make_network(torch, settings):
    """[batch, channel, height, width] -> [batch, action, member, output]."""
    nn = torch.nn
    outputs = settings.actions * settings.members * settings.outputs
    if settings.network == "nature":
        torso = [nn.Conv2d(settings.channels, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2),
                 nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU()]
        features = 7 * 7 * 64
    else:
        torso = [nn.Conv2d(settings.channels, 16, 3, 1), nn.ReLU()]
        features = 8 * 8 * 16
    return nn.Sequential(
        *torso, nn.Flatten(), nn.Linear(features, settings.hidden_units), nn.ReLU(),
        nn.Linear(settings.hidden_units, outputs),
        nn.Unflatten(1, (settings.actions, settings.members, settings.outputs)))


def make_optimizer(torch, settings, network):
    if settings.optimizer == "adam":
        return torch.optim.Adam(network.parameters(), lr=settings.learning_rate,
                                eps=settings.epsilon)
    return torch.optim.RMSprop(network.parameters(), lr=settings.learning_rate, alpha=0.95,
                               eps=settings.epsilon, centered=True)


def make_batch(torch, settings):
    side, top = (84, 255) if settings.network == "nature" else (10, 1)
    shape = (settings.batch, settings.channels, side, side)
    masks = torch.rand(settings.batch, settings.members) < settings.mask_probability
    return SimpleNamespace(
        s_tm1=torch.randint(top + 1, shape, dtype=torch.uint8),
        s_t=torch.randint(top + 1, shape, dtype=torch.uint8),
        a_tm1=torch.randint(settings.actions, (settings.batch,)),
        r_t=torch.rand(settings.batch),
        discount_t=torch.full((settings.batch,), settings.discount),
        weights=torch.rand(settings.batch),
        masks=masks.float(),
        scale=1 / top)


def of_action(outputs, actions):
    """[batch, action, member, output] at [batch, member] -> [batch, member, output]."""
    index = actions[:, None, :, None].expand(-1, 1, -1, outputs.shape[3])
    return outputs.gather(1, index).squeeze(1)


def target_outputs(torch, settings, online, target, batch):
    """r + discount * theta'(s', a'), a' greedy for each member: [batch, member, output]."""
    with torch.no_grad():
        s_t = batch.s_t.float() * batch.scale
        outputs = target(s_t)
        chooser = online(s_t) if settings.double_q else outputs
        greedy = chooser.mean(3).argmax(1)
        return (batch.r_t[:, None, None]
                + batch.discount_t[:, None, None] * of_action(outputs, greedy))


def scalar_losses(torch, settings, predicted, targets):
    """Huber loss [batch, member], and all differences."""
    loss = torch.nn.functional.smooth_l1_loss(predicted, targets, reduction="none")
    return loss.squeeze(2), targets - predicted


def quantile_losses(torch, settings, predicted, targets):
    """Mean over targets, sum over predictions [batch, member], and the differences of all pairs."""
    count = predicted.shape[2]
    tau = (torch.arange(count) + 0.5) / count
    delta = targets[:, :, None, :] - predicted[:, :, :, None]  # [batch, member, online, target]
    kappa = settings.huber_kappa
    size = delta.abs()
    if kappa > 0:
        size = torch.where(size <= kappa, 0.5 * delta**2, kappa * (size - 0.5 * kappa))
    loss = (tau[:, None] - (delta.detach() < 0).float()).abs() * size
    return loss.mean(3).sum(2), delta


def statistics(torch, predicted, targets, delta):
    """TD error, U_delta (the mean over all pairs), E and A of each sample, for the priorities."""
    with torch.no_grad():
        errors = targets.mean(2) - predicted.mean(2)
        return (errors.abs().mean(1), (delta**2).flatten(1).mean(1),
                predicted.var(1, unbiased=False).mean(1), predicted.mean(1).var(1, unbiased=False))


def make_update(torch, settings):
    online, target = make_network(torch, settings), make_network(torch, settings)
    optimizer = make_optimizer(torch, settings, online)
    batch = make_batch(torch, settings)
    taken = batch.a_tm1[:, None].expand(-1, settings.members)
    losses = quantile_losses if settings.head == "quantile" else scalar_losses

    def update():
        targets = target_outputs(torch, settings, online, target, batch)
        predicted = of_action(online(batch.s_tm1.float() * batch.scale), taken)
        member_losses, delta = losses(torch, settings, predicted, targets)
        weighted = batch.weights[:, None] * batch.masks * member_losses
        loss = weighted.sum() / batch.masks.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        if settings.max_global_norm > 0:
            torch.nn.utils.clip_grad_norm_(online.parameters(), settings.max_global_norm)
        optimizer.step()
        return statistics(torch, predicted, targets, delta)

    return update


def measure_ms(repeats, call):
    for _ in range(WARM_UP_CALLS):
        call()
    values = []
    for _ in range(repeats):
        calls, start = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - start < LEAST_SECONDS:
            call()
            calls += 1
        values.append((time.perf_counter() - start) * 1e3 / calls)
    values.sort()
    return {"median": values[len(values) // 2], "low": values[0], "high": values[-1]}


def main():
    settings = SimpleNamespace(**json.loads(sys.argv[1]))
    if importlib.util.find_spec("torch") is None:
        print("torch is not installed: left out", file=sys.stderr)
        print("[]")
        return
    if settings.head == "categorical":
        print("no PyTorch version of categorical heads here: left out", file=sys.stderr)
        print("[]")
        return
    if not wait_policy.is_child():
        best = wait_policy.faster_of_both(lambda peer: -peer["update_ms"]["median"])
        print(json.dumps([best]))
        return
    import torch

    torch.manual_seed(1)
    torch.set_num_threads(settings.threads)
    version = torch.__version__.split("+")[0]
    print(json.dumps([{"name": f"PyTorch {version} eager",
                       "update_ms": measure_ms(settings.repeats, make_update(torch, settings))}]))


if __name__ == "__main__":
    main()
