#include "uper/engine/learner_tensors.h"

namespace uper {
namespace {

void AddTensors(const ParameterLayout& layout, const std::string& prefix,
                std::span<const float> values, checkpoint::TensorMap& tensors) {
  for (const ParameterView& view : layout.views()) {
    tensors[prefix + "/" + view.name] =
        checkpoint::AsTensor(values.subspan(view.offset, view.size()),
                             std::vector<std::uint64_t>(view.shape.begin(), view.shape.end()));
  }
}

void CopyTensors(const ParameterLayout& layout, const std::string& prefix,
                 const checkpoint::TensorMap& tensors, std::span<float> values) {
  for (const ParameterView& view : layout.views()) {
    checkpoint::CopyTensor(tensors, prefix + "/" + view.name,
                           values.subspan(view.offset, view.size()));
  }
}

}  // namespace

void SaveLearner(Learner& learner, checkpoint::CheckpointContent& content) {
  const LearnerState state = learner.State();
  const ParameterLayout& layout = learner.layout();
  AddTensors(layout, "online", state.online, content.tensors["parameters"]);
  AddTensors(layout, "target", state.target, content.tensors["parameters"]);
  AddTensors(layout, "m", state.first_moment, content.tensors["optimizer"]);
  AddTensors(layout, "v", state.second_moment, content.tensors["optimizer"]);
  content.document["updates"] = state.updates;
}

void RestoreLearner(const checkpoint::LoadedCheckpoint& checkpoint, Learner& learner) {
  const LearnerState state = learner.State();
  const ParameterLayout& layout = learner.layout();
  CopyTensors(layout, "online", checkpoint.Tensors("parameters"), state.online);
  CopyTensors(layout, "target", checkpoint.Tensors("parameters"), state.target);
  CopyTensors(layout, "m", checkpoint.Tensors("optimizer"), state.first_moment);
  CopyTensors(layout, "v", checkpoint.Tensors("optimizer"), state.second_moment);
  learner.CommitState(checkpoint.document.at("updates"));
}

}  // namespace uper
