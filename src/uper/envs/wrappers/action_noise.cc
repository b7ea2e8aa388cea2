#include "uper/envs/wrappers/action_noise.h"

namespace uper {

StickyActions::StickyActions(std::unique_ptr<Environment> inner, double probability,
                             std::unique_ptr<GameRandom> random)
    : EnvironmentWrapper(std::move(inner)), probability_(probability), random_(std::move(random)) {}

TimeStep StickyActions::DoStep(int action, std::span<std::byte> observation) {
  if (!random_->Chance(DrawPurpose::kRepeatAction, probability_)) last_action_ = action;
  return EnvironmentWrapper::DoStep(last_action_, observation);
}

void StickyActions::DoSaveState(ByteWriter& writer) const {
  EnvironmentWrapper::DoSaveState(writer);
  random_->Save(writer);
  writer.Write(last_action_);
}

void StickyActions::DoRestoreState(ByteReader& reader) {
  EnvironmentWrapper::DoRestoreState(reader);
  random_->Restore(reader);
  last_action_ = reader.ReadInRange(0, spec().actions - 1);
}

RandomActions::RandomActions(std::unique_ptr<Environment> inner, double probability,
                             const RandomStream& stream)
    : EnvironmentWrapper(std::move(inner)), probability_(probability), stream_(stream) {}

TimeStep RandomActions::DoStep(int action, std::span<std::byte> observation) {
  const bool random = stream_.Bernoulli(probability_);
  if (random) action = static_cast<int>(stream_.UniformInt(spec().actions));
  TimeStep step = EnvironmentWrapper::DoStep(action, observation);
  step.noisy = step.noisy || random;
  return step;
}

void RandomActions::DoSaveState(ByteWriter& writer) const {
  EnvironmentWrapper::DoSaveState(writer);
  writer.Write(stream_.position());
}

void RandomActions::DoRestoreState(ByteReader& reader) {
  EnvironmentWrapper::DoRestoreState(reader);
  stream_.set_position(reader.Read<std::uint64_t>());
}

}  // namespace uper
