#include "uper/replay/fields/step_replay.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "uper/base/check.h"

namespace uper {
namespace {

std::size_t SumOf(const StepReplayOptions& options, const std::vector<std::size_t>& fields) {
  std::size_t bytes = 0;
  for (const std::size_t field : fields) bytes += options.replay.field_bytes.at(field);
  return bytes;
}

// With frames an observation is the ids of its frames.
EnvironmentStepsOptions StepsOptions(const StepReplayOptions& options) {
  const auto& frames = options.replay.frames;
  return {.environments = options.environments,
          .n_steps = options.n_steps,
          .discount = options.discount,
          .observation_bytes = frames ? frames->stack_depth * sizeof(std::uint64_t)
                                      : SumOf(options, options.fields.observations),
          .step_bytes = SumOf(options, options.fields.steps)};
}

FrameStack StackOf(const std::byte* ids, std::size_t depth) {
  FrameStack stack(depth);
  for (std::size_t i = 0; i < depth; ++i) {
    std::uint64_t id;
    std::memcpy(&id, ids + i * sizeof(id), sizeof(id));
    stack.Push(id);
  }
  return stack;
}

bool IsZero(const std::byte* bytes, std::size_t count) {
  return bytes[0] == std::byte{0} && std::memcmp(bytes, bytes + 1, count - 1) == 0;
}

// A number as a field of 4 or 8 bytes.
class NumberField {
 public:
  NumberField(float number, std::size_t bytes) : single_(number), wide_(number), bytes_(bytes) {}
  const std::byte* bytes() const {
    return bytes_ == sizeof(float) ? reinterpret_cast<const std::byte*>(&single_)
                                   : reinterpret_cast<const std::byte*>(&wide_);
  }

 private:
  float single_;
  double wide_;
  std::size_t bytes_;
};

}  // namespace

StepReplay::StepReplay(const StepReplayOptions& options, std::uint64_t seed)
    : options_(options), replay_(options.replay, seed), steps_(StepsOptions(options)) {
  const StepFields& fields = options.fields;
  UPER_CHECK(fields.observations.size() == fields.next_observations.size(),
             "every observation has a next one");
  for (const std::size_t field : {fields.reward, fields.discount}) {
    const std::size_t bytes = options.replay.field_bytes.at(field);
    UPER_CHECK(bytes == sizeof(float) || bytes == sizeof(double), "rewards are floats or doubles");
  }
  observation_.resize(steps_.options().observation_bytes);
  final_observation_.resize(steps_.options().observation_bytes);
  step_.resize(steps_.options().step_bytes);
  pointers_.resize(options.replay.field_bytes.size());
}

// The frame with these pixels, if it is one of the candidates; otherwise it is stored.
std::uint64_t StepReplay::FindFrame(const std::byte* pixels,
                                    std::span<const std::uint64_t> candidates) {
  const std::size_t bytes = options_.replay.frames->frame_bytes;
  if (IsZero(pixels, bytes)) return kZeroFrame;
  const FrameStore& frames = replay_.frames();
  for (const std::uint64_t id : candidates) {
    if (id == kZeroFrame || id < frames.first_frame() || id >= frames.next_frame()) continue;
    if (std::memcmp(frames.Frame(id).data(), pixels, bytes) == 0) return id;
  }
  return replay_.AddFrame({reinterpret_cast<const std::uint8_t*>(pixels), bytes});
}

// Frames of a stack are those of the stack before, one place further or in the same place, or the
// frame beside them (wrappers pad the first stack with copies), or new.
void StepReplay::FindFrames(std::size_t environment, const std::byte* stack,
                            std::vector<std::byte>& ids) {
  const std::size_t depth = options_.replay.frames->stack_depth;
  const std::size_t bytes = options_.replay.frames->frame_bytes;
  std::array<std::uint64_t, FrameStack::kMaxDepth + 1> before;
  before.fill(kZeroFrame);
  if (steps_.IsInEpisode(environment)) {
    std::memcpy(before.data(), steps_.Current(environment), depth * sizeof(std::uint64_t));
  }
  std::array<std::uint64_t, FrameStack::kMaxDepth> found;
  for (std::size_t i = 0; i < depth; ++i) {
    const std::uint64_t candidates[] = {before[i + 1], before[i],
                                        i > 0 ? found[i - 1] : kZeroFrame};
    found[i] = FindFrame(stack + i * bytes, candidates);
  }
  std::memcpy(ids.data(), found.data(), depth * sizeof(std::uint64_t));
}

// The observation of a row in one piece: where it lies, or joined in `scratch`.
const std::byte* StepReplay::Observation(std::size_t environment, std::size_t row,
                                         std::span<const std::byte* const> arrays,
                                         std::vector<std::byte>& scratch) {
  if (options_.replay.frames) {
    const auto& frames = *options_.replay.frames;
    FindFrames(environment, arrays[0] + row * frames.stack_depth * frames.frame_bytes, scratch);
    return scratch.data();
  }
  const auto& fields = options_.fields.observations;
  if (fields.size() == 1) return arrays[0] + row * options_.replay.field_bytes[fields[0]];
  std::byte* to = scratch.data();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::size_t bytes = options_.replay.field_bytes[fields[f]];
    std::memcpy(to, arrays[f] + row * bytes, bytes);
    to += bytes;
  }
  return scratch.data();
}

const std::byte* StepReplay::StepOf(const StepBatch& batch, std::size_t row) {
  std::byte* to = step_.data();
  for (std::size_t f = 0; f < batch.steps.size(); ++f) {
    const std::size_t bytes = options_.replay.field_bytes[options_.fields.steps[f]];
    std::memcpy(to, batch.steps[f] + row * bytes, bytes);
    to += bytes;
  }
  return step_.data();
}

void StepReplay::Reset(std::span<const std::size_t> environments,
                       std::span<const std::byte* const> observations) {
  for (std::size_t row = 0; row < environments.size(); ++row) {
    const std::size_t environment = environments[row];
    steps_.Start(environment, Observation(environment, row, observations, observation_));
  }
}

void StepReplay::CheckSteps(const StepBatch& batch) const {
  for (std::size_t row = 0; row < batch.environments.size(); ++row) {
    steps_.Check(batch.environments[row], batch.terminated[row] != 0 || batch.truncated[row] != 0,
                 !batch.final_observations.empty(), batch.autoreset);
  }
}

AddedTransitions StepReplay::Step(const StepBatch& batch) {
  CheckSteps(batch);
  const std::uint64_t first_id = replay_.buffer().next_id();
  for (std::size_t row = 0; row < batch.environments.size(); ++row) {
    const std::size_t environment = batch.environments[row];
    EnvironmentStep step{.step = StepOf(batch, row),
                         .reward = batch.rewards[row],
                         .terminated = batch.terminated[row] != 0,
                         .truncated = batch.truncated[row] != 0};
    if (step.last() && batch.autoreset == Autoreset::kSameStep) {
      step.final_observation =
          Observation(environment, row, batch.final_observations, final_observation_);
    }
    step.observation = Observation(environment, row, batch.observations, observation_);
    for (const FoldedTransition& done : steps_.Add(environment, step, batch.autoreset)) {
      AddTransition(done);
    }
  }
  return {.first_id = first_id,
          .count = static_cast<std::size_t>(replay_.buffer().next_id() - first_id)};
}

void StepReplay::AddTransition(const FoldedTransition& transition) {
  const StepFields& fields = options_.fields;
  const auto& bytes = options_.replay.field_bytes;
  const NumberField reward(transition.reward, bytes[fields.reward]);
  const NumberField discount(transition.discount, bytes[fields.discount]);
  pointers_[fields.reward] = reward.bytes();
  pointers_[fields.discount] = discount.bytes();
  const std::byte* before = transition.s_tm1;
  const std::byte* after = transition.s_t;
  for (std::size_t f = 0; f < fields.observations.size(); ++f) {
    pointers_[fields.observations[f]] = before;
    pointers_[fields.next_observations[f]] = after;
    before += bytes[fields.observations[f]];
    after += bytes[fields.observations[f]];
  }
  const std::byte* step = transition.step;
  for (const std::size_t field : fields.steps) {
    pointers_[field] = step;
    step += bytes[field];
  }
  if (!options_.replay.frames) {
    replay_.Add(pointers_, 1);
    return;
  }
  const std::size_t depth = options_.replay.frames->stack_depth;
  const FrameStacks stacks{StackOf(transition.s_tm1, depth), StackOf(transition.s_t, depth)};
  replay_.Add(pointers_, 1, {}, {&stacks, 1});
}

void StepReplay::Save(StateWriter& out) const {
  replay_.Save(out);
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  steps_.Save(writer);
  out.Block("steps", bytes);
}

void StepReplay::Load(StateReader& in) {
  replay_.Load(in);
  std::vector<std::byte> bytes(in.Begin("steps"));
  in.Read(bytes);
  in.End();
  ByteReader reader(bytes);
  steps_.Load(reader);
  reader.ExpectEnd();
}

}  // namespace uper
