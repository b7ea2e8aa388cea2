#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "uper/envs/environment.h"
#include "uper/envs/options.h"

namespace uper {

// Every environment that can be made, in the order in which they are listed to users.
std::vector<std::string> EnvironmentNames();

// Makes an environment with the noise and limits of the options. Seed and index name its random
// streams: equal ones play alike, environments of different index are independent. Throws
// Error(kUsage) for an unknown name, with the nearest one, and for options out of range.
std::unique_ptr<Environment> MakeEnvironment(std::string_view name,
                                             const EnvironmentOptions& options, std::uint64_t seed,
                                             std::uint64_t index);

}  // namespace uper
