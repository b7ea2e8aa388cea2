#include "uper/envs/atari/games.h"

#include <algorithm>

namespace uper::atari {

const std::array<Game, 57> kGames = {{
    {"alien", "f1a0a23e6464d954e3a9579c4ccd01c8", 18},
    {"amidar", "acb7750b4d0c4bd34969802a7deb2990", 10},
    {"assault", "de78b3a064d374390ac0710f95edde92", 7},
    {"asterix", "89a68746eff7f266bbf08de2483abe55", 9},
    {"asteroids", "ccbd36746ed4525821a8083b0d6d2c2c", 14},
    {"atlantis", "9ad36e699ef6f45d9eb6c4cf90475c9f", 4},
    {"bank_heist", "00ce0bdd43aed84a983bef38fe7f5ee3", 18},
    {"battle_zone", "41f252a66c6301f1e8ab3612c19bc5d4", 18},
    {"beam_rider", "79ab4123a83dc11d468fb2108ea09e2e", 9},
    {"berzerk", "136f75c4dd02c29283752b7e5799f978", 18},
    {"bowling", "c9b7afad3bfd922e006a6bfc1d4f3fe7", 6},
    {"boxing", "c3ef5c4653212088eda54dc91d787870", 18},
    {"breakout", "f34f08e5eb96e500e851a80be3277a56", 4},
    {"centipede", "91c2098e88a6b13f977af8c003e0bca5", 18},
    {"chopper_command", "c1cb228470a87beb5f36e90ac745da26", 18},
    {"crazy_climber", "55ef7b65066428367844342ed59f956c", 9},
    {"defender", "0f643c34e40e3f1daafd9c524d3ffe64", 18},
    {"demon_attack", "f0e0addc07971561ab80d9abe1b8d333", 6},
    {"double_dunk", "368d88a6c071caba60b4f778615aae94", 18},
    {"enduro", "94b92a882f6dbaa6993a46e2dcc58402", 9},
    {"fishing_derby", "b8865f05676e64f3bec72b9defdacfa7", 18},
    {"freeway", "8e0ab801b1705a740b476b7f588c6d16", 3},
    {"frostbite", "4ca73eb959299471788f0b685c3ba0b5", 18},
    {"gopher", "c16c79aad6272baffb8aae9a7fff0864", 8},
    {"gravitar", "8ac18076d01a6b63acf6e2cab4968940", 18},
    {"hero", "fca4a5be1251927027f2c24774a02160", 18},
    {"ice_hockey", "a4c08c4994eb9d24fb78be1793e82e26", 18},
    {"jamesbond", "e51030251e440cffaab1ac63438b44ae", 18},
    {"kangaroo", "4326edb70ff20d0ee5ba58fa5cb09d60", 18},
    {"krull", "4baada22435320d185c95b7dd2bcdb24", 18},
    {"kung_fu_master", "5b92a93b23523ff16e2789b820e2a4c5", 14},
    {"montezuma_revenge", "3347a6dd59049b15a38394aa2dafa585", 18},
    {"ms_pacman", "87e79cd41ce136fd4f72cc6e2c161bee", 9},
    {"name_this_game", "36306070f0c90a72461551a7a4f3a209", 6},
    {"phoenix", "7e52a95074a66640fcfde124fffd491a", 8},
    {"pitfall", "3e90cf23106f2e08b2781e41299de556", 18},
    {"pong", "60e0ea3cbe0913d39803477945e9e5ec", 6},
    {"private_eye", "ef3a4f64b6494ba770862768caf04b86", 18},
    {"qbert", "484b0076816a104875e00467d431c2d2", 6},
    {"riverraid", "393948436d1f4cc3192410bb918f9724", 18},
    {"road_runner", "ce5cc62608be2cd3ed8abd844efb8919", 18},
    {"robotank", "4f618c2429138e0280969193ed6c107e", 18},
    {"seaquest", "240bfbac5163af4df5ae713985386f92", 18},
    {"skiing", "b76fbadc8ffb1f83e2ca08b6fb4d6c9f", 3},
    {"solaris", "e72eb8d4410152bdcb69e7fba327b420", 18},
    {"space_invaders", "72ffbef6504b75e69ee1045af9075f66", 6},
    {"star_gunner", "a3c1c70024d7aabb41381adbfb6d3b25", 18},
    {"surround", "4d7517ae69f95cfbc053be01312b7dba", 5},
    {"tennis", "42cdd6a9e42a3639e190722b8ea3fc51", 18},
    {"time_pilot", "fc2104dd2dadf9a6176c1c1c8f87ced9", 10},
    {"tutankham", "085322bae40d904f53bdcc56df0593fc", 8},
    {"up_n_down", "a499d720e7ee35c62424de882a3351b6", 6},
    {"venture", "3e899eba0ca8cd2972da1ae5479b4f0d", 18},
    {"video_pinball", "107cc025334211e6d29da0b6be46aec7", 9},
    {"wizard_of_wor", "7e8aa18bc9502eb57daaf5e7c1e94da7", 10},
    {"yars_revenge", "c5930d0e8cdae3e037349bfa08e871be", 18},
    {"zaxxon", "eea0da9b987d661264cce69a7c13c3bd", 18},
}};

const Game* FindGame(std::string_view name) {
  const auto found = std::find_if(kGames.begin(), kGames.end(),
                                  [&](const Game& game) { return game.name == name; });
  return found == kGames.end() ? nullptr : &*found;
}

}  // namespace uper::atari
