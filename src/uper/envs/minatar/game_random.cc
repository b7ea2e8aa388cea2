#include "uper/envs/minatar/game_random.h"

#include "uper/base/check.h"

namespace uper {

int StreamGameRandom::Below(DrawPurpose, int bound) {
  UPER_CHECK(bound > 0, "the range must not be empty");
  return static_cast<int>(stream_.UniformInt(static_cast<std::uint64_t>(bound)));
}

}  // namespace uper
