#include "uper/nn/learner.h"

#include "uper/base/error.h"

namespace uper {
namespace {

[[noreturn]] void ThrowBadSpec(const std::string& message) {
  throw Error(ErrorKind::kUsage, message);
}

}  // namespace

void Learner::MemberOutputs(std::span<const std::byte> /*observation*/,
                            std::span<float> /*outputs*/) {
  throw Error(ErrorKind::kUsage,
              "the outputs of single members cannot be had on this device; use the CPU");
}

void LearnerSpec::Validate() const {
  network.Validate();
  std::visit([](const auto& options) { options.Validate(); }, optimizer);
  if (batch < 1) ThrowBadSpec("replay.batch_size must be at least 1");
  if (network.members > 64) ThrowBadSpec("network.members must be at most 64, the bits of a mask");
  if (loss.head == HeadKind::kScalar && network.outputs != 1) {
    ThrowBadSpec("a scalar head has one output per member");
  }
  if (loss.head == HeadKind::kCategorical) {
    if (network.outputs < 2) ThrowBadSpec("network.atoms must be at least 2");
    if (loss.support.atoms != static_cast<std::size_t>(network.outputs)) {
      ThrowBadSpec("the atoms' support and the head's outputs differ");
    }
    if (!(loss.support.high > loss.support.low)) {
      ThrowBadSpec("network.atoms_high must be above network.atoms_low");
    }
  }
  if (!(max_global_norm >= 0)) ThrowBadSpec("optimizer.max_global_norm must not be negative");
}

}  // namespace uper
