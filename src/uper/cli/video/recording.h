#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "uper/cli/video/dashboard.h"
#include "uper/cli/video/video_writer.h"
#include "uper/envs/environment.h"
#include "uper/train/loop/evaluator.h"

namespace uper::cli {

// Shows the planes of an observation in one color per channel. A single channel of gray values
// stays gray. Where several channels are set, the last one is visible.
Picture PictureOf(const EnvironmentSpec& spec, std::span<const std::byte> observation);

struct RecordingOptions {
  std::filesystem::path file;
  std::string title;
  std::string subtitle;
  int steps_per_second = 10;
  double aleatoric_floor = 1e-10;
};

// Films an evaluation, as the watcher of Evaluate(). It takes the evaluation's learner and
// environment, which must outlive it.
class Recording {
 public:
  // Throws the errors of MakeVideoWriter(), and Error(kUsage) if the learner cannot show its
  // members.
  Recording(const RecordingOptions& options, Learner& learner, const Environment& environment);

  void Show(const EvaluationMoment& moment);
  // Completes the file, which appears under its name.
  void Finish() { writer_->Finish(); }

 private:
  void RenderGame(const EvaluationMoment& moment);

  const RecordingOptions options_;
  Learner& learner_;
  const Environment& environment_;
  Dashboard dashboard_;
  std::unique_ptr<VideoWriter> writer_;
  std::vector<float> outputs_;  // [action, member, output]
  Picture game_;
  Decision decision_;
};

}  // namespace uper::cli
