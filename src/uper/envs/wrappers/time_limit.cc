#include "uper/envs/wrappers/time_limit.h"

#include <limits>

namespace uper {

TimeLimit::TimeLimit(std::unique_ptr<Environment> inner, std::int64_t limit_frames)
    : EnvironmentWrapper(std::move(inner)), limit_frames_(limit_frames) {
  UPER_CHECK(limit_frames > 0, "a limit of at least one frame");
}

void TimeLimit::DoReset(std::span<std::byte> observation) {
  frames_ = 0;
  EnvironmentWrapper::DoReset(observation);
}

TimeStep TimeLimit::DoStep(int action, std::span<std::byte> observation) {
  TimeStep step = EnvironmentWrapper::DoStep(action, observation);
  frames_ += step.frames;
  if (!step.last() && frames_ >= limit_frames_) step.truncated = true;
  return step;
}

void TimeLimit::DoSaveState(ByteWriter& writer) const {
  EnvironmentWrapper::DoSaveState(writer);
  writer.Write(frames_);
}

void TimeLimit::DoRestoreState(ByteReader& reader) {
  EnvironmentWrapper::DoRestoreState(reader);
  frames_ = reader.ReadInRange<std::int64_t>(0, std::numeric_limits<std::int64_t>::max() / 2);
}

}  // namespace uper
