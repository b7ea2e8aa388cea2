#include "uper/train/loop/calendar.h"

#include <algorithm>

namespace uper {
namespace {

bool Crossed(std::int64_t before, std::int64_t after, std::int64_t period) {
  return period > 0 && after / period > before / period;
}

}  // namespace

Calendar::Due Calendar::DueAt(std::int64_t frames) const {
  const std::int64_t before = finished_frames_;
  if (before == frames) return {};
  if (before < 0) {
    const bool evaluate = config_.evaluate_every_frames > 0;
    return {.evaluate = evaluate, .log = evaluate};
  }
  const bool last = frames >= config_.frames;
  const auto due = [&](std::int64_t period) {
    return period > 0 && (last || Crossed(before, frames, period));
  };
  const bool evaluate = due(config_.evaluate_every_frames);
  return {.evaluate = evaluate,
          .log = evaluate || due(config_.log_every_frames),  // every evaluation has its row
          .save = due(config_.checkpoint_every_frames)};
}

void Calendar::AddStep(std::int64_t frames_before, std::int64_t frames, std::int64_t stored) {
  if (stored < std::max<std::int64_t>(1, config_.replay.minimum_transitions)) return;
  if (Crossed(frames_before, frames, config_.agent.learn_period_frames)) AddUpdate();
  if (Crossed(frames_before, frames, config_.agent.target_period_frames)) {
    commands_.push_back(Command::kCopyTarget);
  }
}

void Calendar::AddUpdate() {
  commands_.push_back(Command::kLearn);
  ++updates_;
  const std::int64_t period = config_.agent.target_period_updates;
  if (period > 0 && updates_ % period == 0) commands_.push_back(Command::kCopyTarget);
}

void Calendar::Restore(std::int64_t finished_frames, std::int64_t updates) {
  finished_frames_ = finished_frames;
  updates_ = updates;
}

}  // namespace uper
