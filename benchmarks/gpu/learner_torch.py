"""learner_torch.py [--actions N] [--repeats R]: one ensemble quantile update in PyTorch on a GPU.

The same work as learner_jax.py, plain fp32 (TF32 off), in two ways: eager, and the whole update captured as a CUDA
graph (with fused Adam). Prints a JSON list.
"""

import argparse
import json
import time

import torch

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.benchmark = True
BATCH, MEMBERS, QUANTILES, HIDDEN, DISCOUNT, MAX_NORM = 32, 10, 201, 512, 0.99, 10.0


class Network(torch.nn.Module):
    def __init__(self, actions):
        super().__init__()
        nn = torch.nn
        self.actions = actions
        self.torso = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2),
                                   nn.ReLU(), nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten(),
                                   nn.Linear(3136, HIDDEN), nn.ReLU())
        self.head = nn.Linear(HIDDEN, actions * MEMBERS * QUANTILES)

    def forward(self, pixels):
        outputs = self.head(self.torso(pixels.float() / 255))
        return outputs.view(-1, self.actions, MEMBERS, QUANTILES)


def of_action(outputs, actions):
    index = actions[:, None, :, None].expand(-1, 1, -1, QUANTILES)
    return outputs.gather(1, index).squeeze(1)


class Update:
    def __init__(self, actions):
        torch.manual_seed(1)
        self.online, self.target = Network(actions).cuda(), Network(actions).cuda()
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-5, eps=9.765625e-6,
                                          fused=True, capturable=True)
        cuda = {"device": "cuda"}
        self.s_tm1 = torch.randint(256, (BATCH, 4, 84, 84), dtype=torch.uint8, **cuda)
        self.s_t = torch.randint(256, (BATCH, 4, 84, 84), dtype=torch.uint8, **cuda)
        self.taken = torch.randint(actions, (BATCH, 1), **cuda).expand(-1, MEMBERS)
        self.r_t, self.weights = torch.rand(BATCH, **cuda), torch.rand(BATCH, **cuda)
        self.masks = (torch.rand(BATCH, MEMBERS, **cuda) < 0.5).float()
        self.tau = (torch.arange(QUANTILES, **cuda) + 0.5) / QUANTILES

    def step(self):
        with torch.no_grad():
            outputs = self.target(self.s_t)
            chosen = of_action(outputs, outputs.mean(3).argmax(1))
            targets = self.r_t[:, None, None] + DISCOUNT * chosen
        theta = of_action(self.online(self.s_tm1), self.taken)
        u = targets[:, :, None, :] - theta[:, :, :, None]
        size = u.abs()
        huber = torch.where(size <= 1, 0.5 * u * u, size - 0.5)
        losses = ((self.tau[:, None] - (u.detach() < 0).float()).abs() * huber).mean(3).sum(2)
        loss = (self.weights[:, None] * self.masks * losses).sum() / self.masks.sum().clamp(min=1)
        self.optimizer.zero_grad(set_to_none=False)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.online.parameters(), MAX_NORM)
        self.optimizer.step()
        with torch.no_grad():
            gap = targets.mean(2) - theta.mean(2)
            form = theta - theta.mean(1, keepdim=True)
            delta = (targets.var(2, unbiased=False).mean(1) + (gap**2).mean(1)
                     + form.var(2, unbiased=False).mean(1))
            return (loss, gap.abs().mean(1), theta.var(1, unbiased=False).mean(1),
                    theta.mean(1).var(1, unbiased=False), delta)


def measure_ms(repeats, call):
    times = []
    for _ in range(repeats + 1):
        calls = 100
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3 / calls)
    times = sorted(times[1:])
    return {"median": times[len(times) // 2], "low": times[0], "high": times[-1]}


def captured(update):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            update.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        update.step()
    return graph


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--actions", type=int, default=18)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    version = torch.__version__.split("+")[0]
    eager = Update(arguments.actions)
    results = [{"name": f"PyTorch {version} eager", "actions": arguments.actions,
                "update_ms": measure_ms(arguments.repeats, eager.step)}]
    graph = captured(Update(arguments.actions))
    results.append({"name": f"PyTorch {version} CUDA graph", "actions": arguments.actions,
                    "update_ms": measure_ms(arguments.repeats, graph.replay)})
    print(json.dumps(results))


if __name__ == "__main__":
    main()
