#include "uper/engine/host_engine.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "uper/replay/replay_batch.h"

namespace uper {
namespace {

class HostEngine final : public Engine {
 public:
  HostEngine(const EngineSpec& spec, Learner& learner, TransitionStore& store, UpdateSink& sink)
      : spec_(spec),
        learner_(learner),
        store_(store),
        sink_(sink),
        batch_(learner.spec().batch, store.current().size() / spec.actors),
        priorities_(learner.spec().batch),
        values_(learner.spec().batch),
        noisy_(learner.spec().batch),
        q_(std::size_t{1} * spec.actors * learner.spec().network.actions),
        viewed_(q_.size()) {}

  Lookahead lookahead() const override {
    return spec_.overlap ? Lookahead::kUpdates : Lookahead::kNone;
  }
  std::span<std::byte> ReserveFrames(std::uint64_t, std::size_t) override { return {}; }

  void BeginDecisions(std::span<const ActorView> views) override {
    learner_.ActionValues(store_.current(), spec_.actors, q_);
    const auto actions = static_cast<std::ptrdiff_t>(learner_.spec().network.actions);
    auto to = viewed_.begin();
    for (const ActorView& view : views) {
      const auto from = q_.begin() + static_cast<std::ptrdiff_t>(view.actor) * actions;
      to = std::copy(from, from + actions, to);
    }
    viewed_count_ = static_cast<std::size_t>(to - viewed_.begin());
  }
  std::span<const float> AwaitActionValues() override {
    return std::span(viewed_).first(viewed_count_);
  }

  void Learn(int updates, double importance_exponent) override {
    for (int i = 0; i < updates; ++i) LearnOnce(importance_exponent);
  }
  void CopyTarget() override { learner_.CopyTarget(); }
  bool HasPendingUpdates() override { return false; }
  void AwaitUpdates() override {}
  void SyncToHost() override {}
  void SyncFromHost() override {}

 private:
  using Clock = std::chrono::steady_clock;

  void LearnOnce(double importance_exponent) {
    const Clock::time_point start = Clock::now();
    store_.Sample(
        {.importance_exponent = importance_exponent, .normalization = spec_.normalization},
        batch_.view());
    const std::chrono::duration<double> sampling = Clock::now() - start;
    WritePriorities(Update(), sampling.count());
  }

  LearnerOutput Update() try {
    return learner_.Update({.s_tm1 = batch_.s_tm1,
                            .s_t = batch_.s_t,
                            .a_tm1 = batch_.a_tm1,
                            .r_t = batch_.r_t,
                            .discount_t = batch_.discount_t,
                            .weights = batch_.weights,
                            .masks = batch_.masks});
  } catch (const Error& error) {
    ThrowWithBatch(error.kind(), error.what(), batch_.ids);
  }

  void WritePriorities(const LearnerOutput& output, double sampling_seconds) {
    for (std::size_t i = 0; i < priorities_.size(); ++i) {
      priorities_[i] = ComputePriority(
          spec_.rule, {.uncertainty = output.uncertainty[i], .td_error = output.td_error[i]},
          spec_.limits);
      values_[i] = priorities_[i].value;
      noisy_[i] = store_.IsNoisy(batch_.ids[i]) ? 1 : 0;
    }
    UpdateCounts counts;
    if (spec_.rule != PriorityRule::kUniform) {
      counts = store_.mutable_buffer().SetPriorities(batch_.ids, values_);
    }
    sink_.Take({.loss = output.loss,
                .gradient_norm = output.gradient_norm,
                .weights = batch_.weights,
                .td_error = output.td_error,
                .uncertainty = output.uncertainty,
                .priorities = priorities_,
                .noisy = noisy_,
                .refused_priorities = counts.invalid,
                .sampling_seconds = sampling_seconds});
  }

  const EngineSpec spec_;
  Learner& learner_;
  TransitionStore& store_;
  UpdateSink& sink_;
  ReplayBatch batch_;
  std::vector<Priority> priorities_;  // [batch]
  std::vector<double> values_;        // [batch]: of the priorities
  std::vector<std::uint8_t> noisy_;   // [batch]
  std::vector<float> q_;              // [actor, action]
  std::vector<float> viewed_;         // [view, action]
  std::size_t viewed_count_ = 0;      // of viewed_
};

}  // namespace

std::unique_ptr<Engine> MakeHostEngine(const EngineSpec& spec, Learner& learner,
                                       TransitionStore& store, UpdateSink& sink) {
  return std::make_unique<HostEngine>(spec, learner, store, sink);
}

}  // namespace uper
