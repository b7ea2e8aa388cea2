"""Every update against an independent one: float64, gradients by JAX (learner_oracle.py)."""

import learner_oracle as oracle
import numpy as np
import pytest

# As a share of the largest entry of each array, against float64.
TOLERANCE = 2e-5
# The optimizer alone, given the gradients of the file: only roundings of the parameters are left.
OPTIMIZER_TOLERANCE = 1e-6
# Ten updates in a row, L2 norm of each tensor's error as a share of its change. Rounding parameters
# to float after each step costs up to 3e-4 of the change (2^-25 of a parameter near 1 against steps
# of 1e-4), and where kappa is 0 a pair of equal quantiles changes a gradient by a hundredth. An
# error in the moments or their correction changes steps by tenths.
TEN_CHANGE_TOLERANCE = 1e-3
# Later updates start from parameters that are off by so much; quantities of single samples feel it.
TEN_TOLERANCE = 1e-4

AGENTS = ["dqn", "double-dqn", "per", "qr-dqn", "qr-per", "qr-ens-uni", "qr-ens-per", "qr-ens-epi",
          "qr-ens-uper", "c51", "c51-ens-per", "c51-ens-uper"]
# Compiles in a moment, and nothing about it is even.
SMALL = ["--batch", 9, "--actions", 3, "--members", 3, "--outputs", 7]


def settings(*assignments):
    return [word for assignment in assignments for word in ("--set", assignment)]


@pytest.fixture
def dump(uper, tmp_path):
    """Runs dump-step and reads its file."""

    def run(agent, *arguments):
        path = tmp_path / "step.npz"
        result = uper("dump-step", "--agent", agent, "--out", path, *arguments)
        assert result.returncode == 0, result.stderr
        return oracle.Dump(path)

    return run


def check_one_update(dumped):
    steps, after = oracle.replay(dumped)
    errors = oracle.step_errors(dumped, steps, 0)
    errors.update(oracle.parameter_errors(dumped, oracle.determined(steps, after, TOLERANCE)))
    assert {name: error for name, error in errors.items() if error > TOLERANCE} == {}
    assert max(oracle.optimizer_errors(dumped).values()) < OPTIMIZER_TOLERANCE
    return steps[0]


@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent(dump, agent):
    check_one_update(dump(agent, "--seed", 7))


@pytest.mark.parametrize("agent", ["per", "qr-ens-uper", "c51-ens-uper"])
@pytest.mark.parametrize(
    "sizes",
    [["--members", 1], ["--actions", 18], ["--actions", 1], ["--batch", 1], ["--batch", 64]],
    ids=lambda sizes: f"{sizes[0][2:]}{sizes[1]}",
)
def test_odd_sizes(dump, agent, sizes):
    check_one_update(dump(agent, "--outputs", {"per": 1}.get(agent, 11), *sizes))


@pytest.mark.parametrize("agent, outputs", [("qr-ens-uper", 1), ("qr-dqn", 1), ("c51", 2),
                                            ("c51-ens-uper", 2), ("qr-ens-uper", 201)])
def test_few_and_many_outputs(dump, agent, outputs):
    check_one_update(dump(agent, "--outputs", outputs, "--batch", 5, "--members", 4))


@pytest.mark.parametrize("agent, sizes", [
    ("per", []),
    ("qr-ens-uper", ["--actions", 3]),
    ("c51-ens-per", ["--members", 3]),
])
def test_atari_network_and_settings(dump, agent, sizes):
    check_one_update(dump(agent, "--network", "nature", "--batch", 4, *sizes))


SWITCHES = {
    "scalar_form": ("qr-ens-uper", ["agent.target_form=scalar"]),
    "td_is_loss": ("qr-ens-per", ["agent.td_priority=loss"]),
    "td_is_huber_loss": ("qr-ens-per", ["agent.td_priority=loss", "agent.huber_kappa=0.7"]),
    "td_is_absolute": ("c51-ens-per", ["agent.td_priority=mean_abs"]),
    "double_q": ("qr-ens-uper", ["agent.double_q=true"]),
    "double_q_categorical": ("c51-ens-uper", ["agent.double_q=true"]),
    "ensemble_rule": ("qr-ens-uper", ["agent.target_rule=ensemble"]),
    "ensemble_rule_double_q": ("qr-ens-uper",
                               ["agent.target_rule=ensemble", "agent.double_q=true"]),
    "ensemble_rule_categorical": ("c51-ens-uper", ["agent.target_rule=ensemble"]),
    "sum": ("qr-ens-uper", ["agent.member_weighting=sum"]),
    "sum_categorical": ("c51-ens-uper", ["agent.member_weighting=sum"]),
    "kappa_1": ("qr-ens-uper", ["agent.huber_kappa=1"]),
    "kappa_small": ("qr-ens-uper", ["agent.huber_kappa=0.1"]),
    "separate_hidden": ("qr-ens-uper", ["network.separate_hidden=true"]),
    "separate_hidden_categorical": ("c51-ens-uper", ["network.separate_hidden=true"]),
    "uncertainty_authors": ("c51-ens-uper", ["agent.categorical_uncertainty=authors"]),
    "uncertainty_total_variance": ("c51-ens-uper",
                                   ["agent.categorical_uncertainty=total_variance"]),
    "uncertainty_quantile_scalar_form": ("c51-ens-uper", ["agent.target_form=scalar"]),
    "narrow_atoms": ("c51-ens-uper", ["network.atoms_low=-0.5", "network.atoms_high=0.7"]),
    "all_learn": ("qr-ens-uper", ["agent.mask_probability=1"]),
    "few_learn": ("qr-ens-uper", ["agent.mask_probability=0.05"]),
    "clipped": ("qr-ens-uper", ["optimizer.max_global_norm=0.01"]),
    "other_discount": ("qr-ens-uper", ["agent.discount=0.7"]),
    "large_floor": ("qr-ens-uper", ["agent.aleatoric_floor=10"]),
    "low_cap": ("qr-ens-uper", ["agent.priority_cap=0.8"]),
    "dense_torso": ("qr-ens-uper", ["network.torso=mlp", "network.mlp_layers=2"]),
    "uniform_initialization": ("qr-ens-uper", ["network.initialization=uniform"]),
    "beta": ("qr-ens-uper", ["optimizer.first_moment_decay=0.5"]),
}


@pytest.mark.parametrize("switch", SWITCHES)
def test_switches(dump, switch):
    agent, assignments = SWITCHES[switch]
    changed = dump(agent, *SMALL, *settings(*assignments))
    check_one_update(changed)
    plain = dump(agent, *SMALL)
    assert any(not np.array_equal(array, plain.arrays[name])
               for name, array in changed.arrays.items()
               if name in plain.arrays and name != "settings")


@pytest.mark.parametrize("assignments", [
    ["network.shared_output_bias=true"],
    ["agent.td_gradient_bound=0"],
    ["agent.td_gradient_bound=0.2"],
    ["agent.double_q=false"],
    ["optimizer.epsilon_placement=inside"],
    ["network.members=4", "agent.mask_probability=0.5", "agent.priority=epistemic_delta"],
], ids=lambda assignments: assignments[0])
def test_switches_of_scalar_heads(dump, assignments):
    check_one_update(dump("per", "--batch", 9, "--actions", 3, *settings(*assignments)))


RULES = ["td", "total", "total_delta", "epistemic", "epistemic_delta", "info_gain",
         "info_gain_delta", "ratio_ea", "ratio_ea_delta", "ratio_eu", "ratio_eu_delta", "ratio_e2u",
         "ratio_e2u_delta", "ratio_e3u", "ratio_e3u_delta"]


@pytest.mark.parametrize("agent", ["qr-ens-uper", "c51-ens-uper"])
def test_every_priority_on_an_ensemble(dump, agent):
    seen = []
    for rule in RULES:
        dumped = dump(agent, *SMALL, *settings(f"agent.priority={rule}", "agent.priority_cap=1e6"))
        assert dumped.settings["priority"]["rule"] == rule
        priority = check_one_update(dumped)["priority"]
        assert (priority > 0).all() and (priority < 1e6).all()
        assert all(np.abs(priority / other - 1).max() > 1e-3 for other in seen)
        seen.append(priority)


TEN = {
    "rmsprop_inside": ("dqn", ["optimizer.epsilon_placement=inside",
                               "optimizer.epsilon=9.765625e-6"]),
    "rmsprop_outside": ("per", []),
    "adam_quantile": ("qr-ens-uper", ["agent.huber_kappa=1", "optimizer.epsilon=9.765625e-6",
                                      "optimizer.max_global_norm=10"]),
    "adam_quantile_kappa_0": ("qr-ens-uper", []),
    "adam_categorical": ("c51-ens-uper", []),
}


@pytest.mark.parametrize("case", TEN)
def test_ten_updates_in_a_row(dump, case):
    agent, assignments = TEN[case]
    dumped = dump(agent, "--updates", 10, "--batch", 16, *settings(*assignments))
    steps, after = oracle.replay(dumped)
    assert max(oracle.step_errors(dumped, steps, 0).values()) < TOLERANCE
    for update in range(10):
        errors = {name: error for name, error in oracle.step_errors(dumped, steps, update).items()
                  if not name.startswith("gradient/")}
        assert max(errors.values()) < TEN_TOLERANCE, (update, errors)
    assert max(oracle.change_errors(dumped, after).values()) < TEN_CHANGE_TOLERANCE
    assert max(oracle.optimizer_errors(dumped).values()) < OPTIMIZER_TOLERANCE


def test_the_data_have_what_it_takes(dump):
    """Ends, fractions, masks, clipped errors: else the comparison would miss them."""
    dumped = dump("qr-ens-uper")
    batch = dumped.batch(0)
    assert 1 < (batch["discount"] == 0).sum() < 31
    assert set(np.unique(batch["discount"])) == {0, np.float32(0.99)}
    assert {-1, 0, 1} <= set(batch["reward"]) and (batch["reward"] % 1 != 0).sum() > 3
    assert (batch["weight"] > 0).all() and (batch["weight"] <= 1).all()
    assert 0.3 < batch["mask"].mean() < 0.7
    assert set(np.unique(batch["observation"])) == {0, 1}
    assert len(set(batch["action"])) == 6
    online, target = dumped.parameters("online"), dumped.parameters("target")
    for name, array in online.items():
        assert np.abs(array - target[name]).min() > 0 and np.abs(array).max() > 0
    pixels = dump("dqn", "--network", "nature", "--batch", 2).arrays["observation"]
    assert pixels.shape == (2, 4, 84, 84) and pixels.min() == 0 and pixels.max() == 255


def test_same_bytes_for_any_number_of_threads(uper, tmp_path):
    files = []
    for threads in (1, 2, 3):
        files.append(tmp_path / f"{threads}.npz")
        uper("dump-step", "--agent", "qr-ens-uper", *SMALL, "--updates", 3, "--out", files[-1],
             "--set", f"threads={threads}", check=True)
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()
    other = tmp_path / "other.npz"
    uper("dump-step", "--agent", "qr-ens-uper", *SMALL, "--seed", 2, "--out", other, check=True)
    one = tmp_path / "one.npz"
    uper("dump-step", "--agent", "qr-ens-uper", *SMALL, "--out", one, check=True)
    assert not np.array_equal(np.load(one)["observation"], np.load(other)["observation"])
    assert np.array_equal(np.load(one)["loss"], np.load(files[0])["loss"][0])


@pytest.mark.parametrize("arguments, code, words", [
    (["--agent", "qr-ens-upper"], 2, ["qr-ens-uper"]),
    (["--agent", "dqn", "--outputs", 3], 2, ["--outputs", "scalar"]),
    (["--agent", "c51", "--outputs", 1], 2, ["atoms"]),
    (["--agent", "dqn", "--network", "resnet"], 2, ["--network"]),
    (["--agent", "dqn", "--updates", 0], 2, ["--updates"]),
    (["--agent", "dqn", "--members", 65], 2, ["--members"]),
    (["--agent", "dqn", "--set", "agent.discont=1"], 2, ["agent.discount"]),
    (["--agent", "dqn", "--device", "cuda"], 4, ["cuda"]),
    (["--agent", "dqn", "--device", "tpu"], 2, ["tpu"]),
])
def test_refusals_leave_no_file(uper, tmp_path, arguments, code, words):
    result = uper("dump-step", "--out", tmp_path / "step.npz", *arguments)
    assert result.returncode == code
    assert all(word in result.stderr for word in words), result.stderr
    assert list(tmp_path.iterdir()) == []
