#include "uper/envs/minatar/minatar_game.h"

#include "uper/envs/minatar/asterix.h"
#include "uper/envs/minatar/breakout.h"
#include "uper/envs/minatar/freeway.h"
#include "uper/envs/minatar/seaquest.h"
#include "uper/envs/minatar/space_invaders.h"

namespace uper::minatar {

const std::vector<std::string>& GameNames() {
  static const std::vector<std::string> names = {"asterix", "breakout", "freeway", "seaquest",
                                                 "space_invaders"};
  return names;
}

std::unique_ptr<MinAtarGame> MakeGame(std::string_view name, bool ramping) {
  if (name == "asterix") return std::make_unique<Asterix>(ramping);
  if (name == "breakout") return std::make_unique<Breakout>();
  if (name == "freeway") return std::make_unique<Freeway>();
  if (name == "seaquest") return std::make_unique<Seaquest>(ramping);
  UPER_CHECK(name == "space_invaders", "no MinAtar game '" + std::string(name) + "'");
  return std::make_unique<SpaceInvaders>(ramping);
}

}  // namespace uper::minatar
