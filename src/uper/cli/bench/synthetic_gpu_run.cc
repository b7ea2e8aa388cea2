#include "uper/cli/bench/synthetic_gpu_run.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "uper/engine/make_device_replay.h"
#include "uper/train/run/make_store.h"

namespace uper::cli {
namespace {

constexpr int kTransitions = 4096;  // and at least as many frames

std::optional<DeviceReplaySpec> SpecOf(RunConfig config, const EnvironmentSpec& observations) {
  config.replay.capacity_transitions = kTransitions;
  return DeviceReplaySpecFrom(config, observations);
}

}  // namespace

bool SyntheticGpuRun::Suits(const RunConfig& config, const EnvironmentSpec& observations) {
  return observations.frame_stack > 1 && SpecOf(config, observations);
}

SyntheticGpuRun::SyntheticGpuRun(const RunConfig& config, const EnvironmentSpec& observations,
                                 Learner& learner, std::span<const std::byte> pixels)
    : learner_(learner.spec()),
      mask_probability_(config.agent.mask_probability),
      pixels_(pixels.begin(), pixels.begin() + observations.observation_bytes()),
      replay_(MakeDeviceReplay(*SpecOf(config, observations), learner)),
      stream_(1, "bench loop"),
      weights_(learner_.batch, 0.5F) {
  next_frame_ = kTransitions;
  MirrorHost();
  next_id_ = kTransitions;
  MirrorHost();
}

std::uint32_t SyntheticGpuRun::SlotOf(std::uint64_t frame) const {
  return static_cast<std::uint32_t>(frame % replay_->spec().frame_capacity);
}

void SyntheticGpuRun::MirrorHost() {
  const DeviceReplaySpec& spec = replay_->spec();
  const DeviceRecordSource frames{
      .first_id = next_frame_ > spec.frame_capacity ? next_frame_ - spec.frame_capacity : 0,
      .next_id = next_frame_,
      .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
        for (std::uint64_t i = 0; i < end - begin; ++i) {
          std::copy(pixels_.begin(), pixels_.end(), out.begin() + i * pixels_.size());
        }
      }};
  const DeviceRecordSource transitions{
      .next_id = next_id_,
      .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
        for (std::uint64_t i = 0; i < end - begin; ++i) {
          PutTransition(out.data() + i * replay_->spec().record_bytes);
        }
      }};
  replay_->MirrorHost(transitions, frames);
}

// A random transition.
void SyntheticGpuRun::PutTransition(std::byte* record) {
  for (int i = 0; i < 2 * depth(); ++i) {
    const std::uint32_t slot = SlotOf(stream_.UniformInt(kTransitions));
    std::memcpy(record + i * sizeof(slot), &slot, sizeof(slot));
  }
  const RecordTail tail{
      .a_tm1 = static_cast<std::int32_t>(stream_.UniformInt(learner_.network.actions)),
      .r_t = static_cast<float>(stream_.Uniform()),
      .discount_t = 0.99F,
      .mask = DrawMask()};
  std::memcpy(record + 2 * depth() * sizeof(std::uint32_t), &tail, sizeof(tail));
}

std::uint64_t SyntheticGpuRun::DrawMask() {
  std::uint64_t mask = 0;
  for (int k = 0; k < learner_.network.members; ++k) {
    mask |= std::uint64_t{stream_.Bernoulli(mask_probability_)} << k;
  }
  return mask;
}

void SyntheticGpuRun::Play(int count) {
  std::span<std::byte> frames = replay_->ReserveFrames(next_frame_, count);
  for (; !frames.empty(); frames = frames.subspan(pixels_.size())) {
    std::copy(pixels_.begin(), pixels_.end(), frames.begin());
  }
}

// Calls the replay memory in the order of DeviceEngine.
void SyntheticGpuRun::Act(int count) {
  MirrorHost();
  const std::uint64_t end = next_frame_ + count;
  slots_.clear();
  for (int environment = 0; environment < count; ++environment) {
    for (int back = depth() - 1; back >= 0; --back) {
      slots_.push_back(SlotOf(end - (std::uint64_t{1} * back * count + environment + 1)));
    }
  }
  q_.resize(std::size_t{1} * count * learner_.network.actions);
  replay_->BeginDecisions(slots_, count);
  next_frame_ = end;
  if (count == 1) replay_->PrelaunchDecision();
  replay_->AwaitActionValues(count, q_);
}

void SyntheticGpuRun::Update(int count) {
  const std::size_t batch = weights_.size();
  uniforms_.resize(count * batch);
  ids_.resize(count * batch);
  for (double& uniform : uniforms_) uniform = stream_.Uniform();
  for (std::uint64_t& id : ids_) id = stream_.UniformInt(kTransitions);
  std::vector<DeviceUpdate> updates;
  for (int i = 0; i < count; ++i) {
    const auto mine = [&](auto& list) { return std::span(list).subspan(i * batch, batch); };
    updates.push_back(replay_->spec().samples_on_device
                          ? DeviceUpdate{.importance_exponent = 0.5, .uniforms = mine(uniforms_)}
                          : DeviceUpdate{.ids = mine(ids_), .weights = weights_});
  }
  const auto next_report = [&] {
    const bool is_full = queued_ + count > reported_ + DeviceReplay::kMaxUnreportedUpdates;
    return is_full ? replay_->AwaitReport() : replay_->PollReport();
  };
  while (next_report()) ++reported_;
  replay_->QueueUpdates(updates);
  queued_ += count;
}

}  // namespace uper::cli
