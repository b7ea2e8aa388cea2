#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "uper/base/error.h"
#include "uper/core/priority.h"
#include "uper/core/uncertainty.h"

namespace uper {

// The results of one update. The spans have [batch] entries and are valid during
// UpdateSink::Take().
struct UpdateReport {
  double loss = 0;
  double gradient_norm = 0;
  std::span<const float> weights;  // importance weights
  std::span<const double> td_error;
  std::span<const Uncertainty> uncertainty;
  std::span<const Priority> priorities;
  std::span<const std::uint8_t> noisy;  // injected noise touched the transition
  std::size_t refused_priorities = 0;   // NaN, infinite or negative: the old one was kept
  double sampling_seconds = 0;          // of the caller's time in Engine::Learn()
};

// Takes the reports of updates, in the order of the updates.
class UpdateSink {
 public:
  virtual ~UpdateSink() = default;
  virtual void Take(const UpdateReport& report) = 0;
};

// Throws Error(kind): the message, and the transitions it is about.
[[noreturn]] void ThrowWithBatch(ErrorKind kind, const std::string& message,
                                 std::span<const std::uint64_t> ids);

}  // namespace uper
