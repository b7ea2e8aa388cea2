#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "uper/cli/video/dashboard.h"
#include "uper/cli/video/video_writer.h"
#include "uper/envs/environment.h"
#include "uper/train/loop/evaluator.h"

namespace uper {

// The planes of an observation as colours, one a channel (a single one of grey values stays grey);
// where several are set the last one is seen.
Picture PictureOf(const EnvironmentSpec& spec, std::span<const std::byte> observation);

struct RecordingOptions {
  std::filesystem::path file;
  std::string title;
  std::string subtitle;
  int steps_per_second = 10;
  double aleatoric_floor = 1e-10;
};

// Films an evaluation: a watcher of Evaluate(). Learner and environment are those of the
// evaluation and must outlive it.
class Recording {
 public:
  // Throws what MakeVideoWriter() throws, and Error(kUsage) if the learner shows no members.
  Recording(const RecordingOptions& options, Learner& learner, const Environment& environment);

  void Show(const EvaluationMoment& moment);
  // The film appears under its name.
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

}  // namespace uper
