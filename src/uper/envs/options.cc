#include "uper/envs/options.h"

#include <string>

#include "uper/base/error.h"
#include "uper/base/files/csv_writer.h"

namespace uper {
namespace {

double ValueOf(const EnvironmentOptions& options, const OptionRange::Field& field) {
  return std::visit([&](auto member) { return static_cast<double>(options.*member); }, field);
}

std::string Described(const OptionRange& range) {
  const std::string interval = "[" + NumberText(range.low) + ", " + NumberText(range.high) + "]";
  if (range.minus_one.empty()) return interval;
  return interval + ", or -1 for " + std::string(range.minus_one);
}

}  // namespace

void EnvironmentOptions::Validate() const {
  for (const OptionRange& range : kOptionRanges) {
    if (range.Contains(ValueOf(*this, range.field))) continue;
    throw Error(ErrorKind::kUsage,
                "environment." + std::string(range.name) + " must be in " + Described(range));
  }
}

EnvironmentOptions NoisyMinAtarOptions() {
  return {.reward_noise_sd = 1, .reward_noise_share = 0.25, .noisy_channels = 1};
}

}  // namespace uper
