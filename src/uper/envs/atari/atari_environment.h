#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "uper/base/random.h"
#include "uper/envs/atari/emulator.h"
#include "uper/envs/atari/frame_processor.h"
#include "uper/envs/atari/games.h"
#include "uper/envs/environment.h"
#include "uper/envs/options.h"

namespace uper {

// Rules that turn frames into steps. ProtocolRules() has the two published sets.
struct AtariRules {
  // A picture is the maximum of two screens.
  enum class MaxOver {
    // dqn-zoo: the last two of the four slots of a step. An early end leaves its slots black.
    kLastTwoSlots,
    // dopamine: the last two screens that were kept. These are the third and the fourth of a step,
    // unless the game ended in it.
    kLastTwoScreens,
  };

  int noop_max_frames = 30;  // an episode starts with 1 to this many idle frames; 0: none
  double sticky = 0;         // a frame repeats the last executed action with this probability
  bool discount_lost_lives = true;  // a lost life makes the discount 0, play goes on
  bool episodic_life = false;       // a lost life ends the episode; the next one is a new game
  MaxOver max_over = MaxOver::kLastTwoSlots;
  int frame_size = 84;
};

// The rules of the options: those of their protocol, with the options that override it.
AtariRules ProtocolRules(const EnvironmentOptions& options);
// Frames after which an episode is cut off, in both protocols: half an hour of play.
inline constexpr std::int64_t kAtariTimeLimitFrames = 108'000;

// An Atari game: one step is four frames of the console, an observation is one gray square
// [frame_size, frame_size]; the agent stacks four of them. Rewards are raw sums.
class AtariEnvironment final : public Environment {
 public:
  static constexpr int kActionRepeat = 4;
  static constexpr int kStack = 4;

  // `noops` and `sticky` are the streams of the two random choices here.
  AtariEnvironment(const std::string& name, std::unique_ptr<atari::Emulator> emulator,
                   const AtariRules& rules, const RandomStream& noops, const RandomStream& sticky);

  const EnvironmentSpec& spec() const override { return spec_; }
  // The screen in color: the maximum, per channel, of the two frames of the observation, because
  // many games draw an object in every other frame only.
  bool Render(Picture& picture) const override;

 protected:
  void DoReset(std::span<std::byte> observation) override;
  TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(ByteWriter& writer) const override;
  void DoRestoreState(ByteReader& reader) override;

 private:
  using Screen = std::span<const std::uint8_t>;  // a raw screen, or empty: black

  int DrawNoops();
  int PlayFrame(int action);
  void Keep(int frame, bool last);
  Screen Copy(std::size_t place, Screen screen);
  void Observe(std::span<std::byte> observation);

  // Constant after construction.
  const std::unique_ptr<atari::Emulator> emulator_;
  const AtariRules rules_;
  EnvironmentSpec spec_;

  atari::FrameProcessor processor_;
  RandomStream noops_, sticky_;
  int held_action_ = 0;   // code of the action that the console got last
  int lives_ = 0;         // after the last frame
  Screen older_, newer_;  // screens of the observation: the emulator's memory, or copies
  std::array<std::vector<std::uint8_t>, 2> copies_;
};

// Describes "atari/<game>" without an emulator or a ROM. REQUIRES: a game of kGames.
EnvironmentSpec DescribeAtari(const atari::Game& game, const EnvironmentOptions& options);
// Throws what MakeAtariEnvironment() would throw.
void CheckAtari(const atari::Game& game, const EnvironmentOptions& options);

// Where the options say that the ROMs are.
std::filesystem::path RomFolderOf(const EnvironmentOptions& options);

// The environment "atari/<game>". Throws Error(kMissingData) without emulator or right ROM.
std::unique_ptr<Environment> MakeAtariEnvironment(const atari::Game& game,
                                                  const EnvironmentOptions& options,
                                                  std::uint64_t seed, std::uint64_t index);

}  // namespace uper
