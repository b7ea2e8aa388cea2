#include <fmt/format.h>

#include <cmath>

#include "uper/base/files/npz_writer.h"
#include "uper/base/random.h"
#include "uper/cli/commands.h"
#include "uper/cli/dump_step_json.h"
#include "uper/cli/exit_code.h"
#include "uper/cli/warn_cpu_fallback.h"
#include "uper/core/priority.h"
#include "uper/train/config/resolve_config.h"
#include "uper/train/run/make_learner.h"
#include "uper/train/run/run_setup.h"

namespace uper::cli {
namespace {

bool IsNature(const DumpStepOptions& options) { return options.network == "nature"; }

void SetOutputs(RunConfig& config, int outputs) {
  switch (config.agent.head) {
    case HeadKind::kScalar:
      if (outputs == 1) return;
      throw Error(ErrorKind::kUsage, "--outputs: agent " + config.agent.name +
                                         " has a scalar head, with one output a member");
    case HeadKind::kQuantile:
      config.network.quantiles = outputs;
      return;
    case HeadKind::kCategorical:
      config.network.atoms = outputs;
      return;
  }
}

// Sets sizes after CheckConfig(), which refuses settings that make no sense for training, such as
// masks for a single member.
RunConfig ConfigOf(const DumpStepOptions& options) {
  ConfigInputs inputs{.flags = {{"--agent", "agent.name", options.agent},
                                {"--network", "environment.name",
                                 IsNature(options) ? "atari/breakout" : "minatar/breakout"},
                                {"--device", "device", options.device}},
                      .settings = options.assignments};
  RunConfig config = ResolveConfig(inputs);
  FillAutomaticKeys(config, 1);
  config.replay.batch_size = options.batch;
  if (options.members > 0) config.network.members = options.members;
  if (options.outputs > 0) SetOutputs(config, options.outputs);
  return config;
}

// The observations that a network of that name reads.
EnvironmentSpec InputOf(const DumpStepOptions& options) {
  EnvironmentSpec spec{.name = options.network, .actions = options.actions};
  if (IsNature(options)) {
    spec.height = spec.width = 84;
    spec.frame_stack = 4;
    spec.input_scale = 1.0F / 255;
  } else {
    spec.height = spec.width = 10;
    spec.channels = 4;
    spec.element_max = 1;
  }
  return spec;
}

// Orthogonal initialization leaves biases at zero, which would hide a bias that is forgotten.
void FillBiases(const ParameterLayout& layout, RandomStream& stream, std::span<float> parameters) {
  for (const LayerSpec& layer : layout.layers()) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.bias.fan_in));
    for (float& bias : parameters.subspan(layer.bias.offset, layer.bias.size())) {
      bias = static_cast<float>(bound * (2 * stream.Uniform() - 1));
    }
  }
}

// Online and target network differ, as they do between two target copies.
void Initialize(const RunConfig& config, std::uint64_t seed, Learner& learner) {
  const LearnerState state = learner.State();
  const auto fill = [&](const char* purpose, std::span<float> parameters) {
    RandomStream stream(seed, purpose);
    InitializeParameters(config.network, learner, stream, parameters);
    FillBiases(learner.layout(), stream, parameters);
  };
  fill("dump-step online", state.online);
  fill("dump-step target", state.target);
  learner.CommitState(0);
}

// Transitions of all updates: [update, batch, ...].
struct Transitions {
  std::vector<std::uint8_t> s_tm1, s_t;
  std::vector<std::int32_t> a_tm1;
  std::vector<float> r_t, discount_t, weights;
  std::vector<std::uint64_t> masks;
};

// Sparse ones if `maximum` is 1, bytes of any value if it is 255.
std::vector<std::uint8_t> RandomObservations(std::size_t count, int maximum, RandomStream stream) {
  constexpr double kShareOfOnes = 0.3;
  std::vector<std::uint8_t> entries(count);
  for (std::uint8_t& entry : entries) {
    entry = static_cast<std::uint8_t>(maximum == 1 ? stream.Bernoulli(kShareOfOnes)
                                                   : stream.UniformInt(maximum + 1));
  }
  return entries;
}

// Mostly -1, 0 and 1, with some values between and beyond them.
float RandomReward(RandomStream& stream) {
  constexpr double kWholeShare = 0.6;
  constexpr double kBound = 3;
  const bool whole = stream.Bernoulli(kWholeShare);
  const double share = stream.Uniform();
  return static_cast<float>(whole ? std::floor(3 * share) - 1 : kBound * (2 * share - 1));
}

Transitions RandomTransitions(const LearnerSpec& spec, const RunConfig& config, int maximum,
                              std::size_t count, std::uint64_t seed) {
  constexpr double kEndShare = 0.25;
  const std::size_t entries = count * spec.network.observation_size();
  Transitions data{
      .s_tm1 = RandomObservations(entries, maximum, {seed, "dump-step observations", 0}),
      .s_t = RandomObservations(entries, maximum, {seed, "dump-step observations", 1})};
  RandomStream actions(seed, "dump-step actions");
  RandomStream rewards(seed, "dump-step rewards");
  RandomStream ends(seed, "dump-step ends");
  RandomStream weights(seed, "dump-step weights");
  RandomStream masks(seed, "dump-step masks");
  const auto discount = static_cast<float>(config.agent.discount);
  for (std::size_t i = 0; i < count; ++i) {
    data.a_tm1.push_back(static_cast<std::int32_t>(actions.UniformInt(spec.network.actions)));
    data.r_t.push_back(RandomReward(rewards));
    data.discount_t.push_back(ends.Bernoulli(kEndShare) ? 0.0F : discount);
    data.weights.push_back(static_cast<float>(1 - weights.Uniform()));
    std::uint64_t mask = 0;
    for (int k = 0; k < spec.network.members; ++k) {
      if (masks.Bernoulli(config.agent.mask_probability)) mask |= std::uint64_t{1} << k;
    }
    data.masks.push_back(mask);
  }
  return data;
}

LearnerBatch BatchOf(const Transitions& data, const LearnerSpec& spec, std::size_t update) {
  const std::size_t batch = spec.batch;
  const std::size_t bytes = batch * spec.network.observation_size();
  const auto part = [&](const auto& all, std::size_t size) {
    return std::span(all).subspan(update * size, size);
  };
  return {.s_tm1 = std::as_bytes(part(data.s_tm1, bytes)),
          .s_t = std::as_bytes(part(data.s_t, bytes)),
          .a_tm1 = part(data.a_tm1, batch),
          .r_t = part(data.r_t, batch),
          .discount_t = part(data.discount_t, batch),
          .weights = part(data.weights, batch),
          .masks = part(data.masks, batch)};
}

// Results of the updates: [update], [update, batch] or [update, parameter].
struct UpdateResults {
  std::vector<double> loss, gradient_norm;
  std::vector<double> td_error, epistemic, aleatoric, target_distance_sq, priority;
  std::vector<float> gradient;
};

// The priority of each sample is what the trainer would write.
void Record(const LearnerOutput& output, std::span<const float> gradient, const AgentConfig& agent,
            UpdateResults& results) {
  const PriorityLimits limits{.aleatoric_floor = agent.aleatoric_floor, .cap = agent.priority_cap};
  results.loss.push_back(output.loss);
  results.gradient_norm.push_back(output.gradient_norm);
  results.gradient.insert(results.gradient.end(), gradient.begin(), gradient.end());
  for (std::size_t i = 0; i < output.td_error.size(); ++i) {
    const Uncertainty& uncertainty = output.uncertainty[i];
    results.td_error.push_back(output.td_error[i]);
    results.epistemic.push_back(uncertainty.epistemic);
    results.aleatoric.push_back(uncertainty.aleatoric);
    results.target_distance_sq.push_back(uncertainty.target_distance_sq);
    const PriorityInputs inputs{.uncertainty = uncertainty, .td_error = output.td_error[i]};
    results.priority.push_back(ComputePriority(agent.priority, inputs, limits).value);
  }
}

// Adds arrays of all updates. A single update has no leading axis.
class DumpWriter {
 public:
  DumpWriter(const std::filesystem::path& path, const LearnerSpec& spec, int updates)
      : npz_(path), layout_(spec.network), updates_(updates), batch_(spec.batch) {}

  NpzWriter& npz() { return npz_; }

  void AddParameters(const std::string& prefix, std::span<const float> parameters) {
    for (const ParameterView& view : layout_.views()) {
      npz_.Add(prefix + "/" + view.name, parameters.subspan(view.offset, view.size()),
               NpyShape(view.shape.begin(), view.shape.end()));
    }
  }

  // all: [update, parameter].
  void AddGradients(std::span<const float> all) {
    for (const ParameterView& view : layout_.views()) {
      std::vector<float> gradient;
      for (std::size_t update = 0; update < updates_; ++update) {
        const auto part = all.subspan(update * layout_.size() + view.offset, view.size());
        gradient.insert(gradient.end(), part.begin(), part.end());
      }
      npz_.Add("gradient/" + view.name, gradient,
               Shape({}, NpyShape(view.shape.begin(), view.shape.end())));
    }
  }

  template <typename T>
  void AddPerUpdate(const std::string& name, const std::vector<T>& values) {
    npz_.Add(name, values, Shape({}, {}));
  }
  template <typename T>
  void AddPerSample(const std::string& name, const std::vector<T>& values,
                    const NpyShape& rest = {}) {
    npz_.Add(name, values, Shape({batch_}, rest));
  }

 private:
  NpyShape Shape(NpyShape first, const NpyShape& rest) const {
    if (updates_ > 1) first.insert(first.begin(), updates_);
    first.insert(first.end(), rest.begin(), rest.end());
    return first;
  }

  NpzWriter npz_;
  ParameterLayout layout_;
  std::size_t updates_;
  std::size_t batch_;
};

void AddTransitions(const Transitions& data, const NetworkSpec& network, DumpWriter& writer) {
  const auto height = static_cast<std::size_t>(network.input.height);
  const auto width = static_cast<std::size_t>(network.input.width);
  const auto channels = static_cast<std::size_t>(network.input.channels);
  const NpyShape observation = network.input.layout == InputLayout::kPlanes
                                   ? NpyShape{channels, height, width}
                                   : NpyShape{height, width, channels};
  std::vector<std::uint8_t> masks;
  for (const std::uint64_t mask : data.masks) {
    for (int k = 0; k < network.members; ++k) {
      masks.push_back(static_cast<std::uint8_t>(mask >> k & 1));
    }
  }
  writer.AddPerSample("observation", data.s_tm1, observation);
  writer.AddPerSample("action", data.a_tm1);
  writer.AddPerSample("reward", data.r_t);
  writer.AddPerSample("discount", data.discount_t);
  writer.AddPerSample("next_observation", data.s_t, observation);
  writer.AddPerSample("weight", data.weights);
  writer.AddPerSample("mask", masks, {static_cast<std::size_t>(network.members)});
}

void AddResults(const UpdateResults& results, DumpWriter& writer) {
  writer.AddPerUpdate("loss", results.loss);
  writer.AddGradients(results.gradient);
  writer.AddPerUpdate("gradient_norm", results.gradient_norm);
  writer.AddPerSample("td_error", results.td_error);
  writer.AddPerSample("epistemic", results.epistemic);
  writer.AddPerSample("aleatoric", results.aleatoric);
  writer.AddPerSample("target_distance_sq", results.target_distance_sq);
  writer.AddPerSample("priority", results.priority);
}

}  // namespace

int RunDumpStep(const DumpStepOptions& options) {
  const RunConfig config = ConfigOf(options);
  const EnvironmentSpec input = InputOf(options);
  const LearnerSpec spec = LearnerSpecFrom(config, input);
  ThreadPool pool(ThreadsOf(config));
  WarnCpuFallback(config);
  const std::unique_ptr<Learner> made = MakeLearnerOn(ResolveDevice(config), spec, pool);
  Learner& learner = *made;
  Initialize(config, options.seed, learner);
  const Transitions data =
      RandomTransitions(spec, config, static_cast<int>(input.element_max),
                        std::size_t{1} * options.updates * spec.batch, options.seed);

  DumpWriter writer(options.out, spec, options.updates);
  writer.npz().AddText("settings", DumpStepSettings(config, spec, options.seed, options.updates));
  writer.AddParameters("online", learner.State().online);
  writer.AddParameters("target", learner.State().target);
  AddTransitions(data, spec.network, writer);
  UpdateResults results;
  for (int update = 0; update < options.updates; ++update) {
    const LearnerOutput output = learner.Update(BatchOf(data, spec, update));
    Record(output, learner.gradient(), config.agent, results);
  }
  AddResults(results, writer);
  writer.AddParameters("after", learner.State().online);
  writer.npz().Commit();
  fmt::print(stderr, "wrote {}\n", options.out.string());
  return kExitDone;
}

}  // namespace uper::cli
