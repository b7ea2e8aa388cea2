#include "uper/envs/atari/atari_environment.h"

#include <algorithm>

#include "uper/base/check.h"
#include "uper/envs/atari/rom_file.h"

namespace uper {
namespace {

constexpr int kNoop = 0;

atari::FrameProcessor MakeProcessor(const atari::Emulator& emulator, const AtariRules& rules) {
  const bool zoo = rules.max_over == AtariRules::MaxOver::kLastTwoSlots;
  const atari::FrameProcessorOptions options = {
      .height = emulator.height(),
      .width = emulator.width(),
      .size = rules.frame_size,
      .resize = zoo ? atari::ResizeRule::kBilinear : atari::ResizeRule::kArea};
  return {options, zoo ? atari::LumaOfMaximum(emulator.palette())
                       : atari::MaximumOfGray(emulator.palette())};
}

EnvironmentSpec SpecOf(const std::string& name, int actions, int frame_size) {
  return {.name = name,
          .actions = actions,
          .height = frame_size,
          .width = frame_size,
          .frame_stack = AtariEnvironment::kStack,
          .max_frames_per_step = AtariEnvironment::kActionRepeat,
          .input_scale = 1.0F / 255};
}

std::string NameOf(const atari::Game& game) { return "atari/" + std::string(game.name); }

atari::EmulatorOptions ConsoleFor(const atari::Game& game, const EnvironmentOptions& options) {
  return {.rom = atari::CheckedRom(RomFolderOf(options), game),
          .full_action_set = options.full_action_set,
          .mode = options.mode,
          .difficulty = options.difficulty,
          .cached_reset = options.cached_reset};
}

}  // namespace

AtariRules ProtocolRules(const EnvironmentOptions& options) {
  AtariRules rules;
  if (options.protocol == AtariProtocol::kDopamine) {
    rules.noop_max_frames = 0;
    rules.sticky = 0.25;
    rules.discount_lost_lives = false;
    rules.max_over = AtariRules::MaxOver::kLastTwoScreens;
  }
  if (options.noop_max_frames >= 0) rules.noop_max_frames = options.noop_max_frames;
  if (options.sticky >= 0) rules.sticky = options.sticky;
  rules.episodic_life = options.episodic_life;
  rules.frame_size = options.frame_size;
  return rules;
}

AtariEnvironment::AtariEnvironment(const std::string& name,
                                   std::unique_ptr<atari::Emulator> emulator,
                                   const AtariRules& rules, const RandomStream& noops,
                                   const RandomStream& sticky)
    : emulator_(std::move(emulator)),
      rules_(rules),
      spec_(SpecOf(name, static_cast<int>(emulator_->actions().size()), rules.frame_size)),
      processor_(MakeProcessor(*emulator_, rules)),
      noops_(noops),
      sticky_(sticky) {}

void AtariEnvironment::DoReset(std::span<std::byte> observation) {
  emulator_->ResetAndIdle(DrawNoops());
  held_action_ = kNoop;
  lives_ = emulator_->lives();
  older_ = Copy(0, emulator_->screen());
  newer_ = {};
  Observe(observation);
}

// The number of idle frames at the start of an episode.
int AtariEnvironment::DrawNoops() {
  if (rules_.noop_max_frames == 0) return 0;
  return 1 +
         static_cast<int>(noops_.UniformInt(static_cast<std::uint64_t>(rules_.noop_max_frames)));
}

TimeStep AtariEnvironment::DoStep(int action, std::span<std::byte> observation) {
  const int code = emulator_->actions()[static_cast<std::size_t>(action)];
  TimeStep step{.frames = 0};
  if (rules_.max_over == AtariRules::MaxOver::kLastTwoSlots) {
    older_ = newer_ = {};
  }
  bool lost_life = false;
  while (step.frames < kActionRepeat && !step.terminated) {
    step.reward += PlayFrame(code);
    const int lives = emulator_->lives();
    lost_life = lost_life || lives < lives_;
    lives_ = lives;
    step.terminated = emulator_->game_over() || (rules_.episodic_life && lost_life);
    Keep(step.frames, step.terminated);
    ++step.frames;
  }
  if (step.terminated || (lost_life && rules_.discount_lost_lives)) step.discount = 0;
  Observe(observation);
  return step;
}

int AtariEnvironment::PlayFrame(int action) {
  if (rules_.sticky == 0 || !sticky_.Bernoulli(rules_.sticky)) held_action_ = action;
  return emulator_->Act(held_action_);
}

// Keeps the screen of the given frame of a step if the observation needs it.
void AtariEnvironment::Keep(int frame, bool last) {
  if (frame < kActionRepeat - 2) return;
  const bool is_newer = frame == kActionRepeat - 1;
  const Screen screen = emulator_->screen();
  if (rules_.max_over == AtariRules::MaxOver::kLastTwoScreens) {  // beyond this step
    if (!last) (is_newer ? newer_ : older_) = Copy(is_newer ? 1 : 0, screen);
  } else if (is_newer) {
    newer_ = screen;
  } else {
    older_ = last || emulator_->screen_stays() ? screen : Copy(0, screen);
  }
}

AtariEnvironment::Screen AtariEnvironment::Copy(std::size_t place, Screen screen) {
  copies_[place].assign(screen.begin(), screen.end());
  return copies_[place];
}

void AtariEnvironment::Observe(std::span<std::byte> observation) {
  if (older_.empty() && newer_.empty()) {
    std::fill(observation.begin(), observation.end(), std::byte{0});
    return;
  }
  processor_.Process(older_.empty() ? newer_ : older_, newer_.empty() ? older_ : newer_,
                     observation);
}

bool AtariEnvironment::Render(Picture& picture) const {
  const std::span<const std::uint8_t> now = emulator_->screen();
  const Screen older = older_.empty() ? now : older_;
  const Screen newer = newer_.empty() ? now : newer_;
  picture.height = emulator_->height();
  picture.width = emulator_->width();
  picture.rgb.resize(now.size() * 3);
  const auto& colors = emulator_->palette().rgb;
  for (std::size_t i = 0; i < now.size(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      picture.rgb[3 * i + c] = std::max(colors[older[i] / 2][c], colors[newer[i] / 2][c]);
    }
  }
  return true;
}

void AtariEnvironment::DoSaveState(ByteWriter& writer) const {
  emulator_->Save(writer);
  writer.Write(noops_.position());
  writer.Write(sticky_.position());
  writer.Write(held_action_);
  writer.Write(lives_);
  // dqn-zoo makes no observation from the pictures of an earlier step.
  if (rules_.max_over == AtariRules::MaxOver::kLastTwoSlots) return;
  writer.WriteBlock(std::as_bytes(older_));
  writer.WriteBlock(std::as_bytes(newer_));
}

void AtariEnvironment::DoRestoreState(ByteReader& reader) {
  const auto read_picture = [&](std::size_t place) {
    const auto block = reader.ReadBlock();
    const std::size_t pixels = emulator_->screen().size();
    if (!block.empty() && block.size() != pixels) {
      throw Error(ErrorKind::kCorrupt, "a saved Atari state has a picture of another size");
    }
    return Copy(place, {reinterpret_cast<const std::uint8_t*>(block.data()), block.size()});
  };
  emulator_->Restore(reader);
  noops_.set_position(reader.Read<std::uint64_t>());
  sticky_.set_position(reader.Read<std::uint64_t>());
  held_action_ = reader.Read<int>();
  const std::vector<int>& actions = emulator_->actions();
  if (held_action_ != kNoop &&
      std::find(actions.begin(), actions.end(), held_action_) == actions.end()) {
    throw Error(ErrorKind::kCorrupt, "a saved Atari state holds an action the game does not have");
  }
  lives_ = reader.Read<int>();
  if (rules_.max_over == AtariRules::MaxOver::kLastTwoSlots) return;
  older_ = read_picture(0);
  newer_ = read_picture(1);
}

std::filesystem::path RomFolderOf(const EnvironmentOptions& options) {
  if (options.rom_dir.empty()) return atari::DefaultRomFolder();
  return options.rom_dir;
}

EnvironmentSpec DescribeAtari(const atari::Game& game, const EnvironmentOptions& options) {
  const int actions = options.full_action_set ? atari::kAllActions : game.actions;
  return SpecOf(NameOf(game), actions, options.frame_size);
}

void CheckAtari(const atari::Game& game, const EnvironmentOptions& options) {
  const atari::EmulatorOptions console = ConsoleFor(game, options);
  // Only the emulator has the modes of a game.
  if (options.mode >= 0 || options.difficulty >= 0) atari::MakeEmulator(console);
}

std::unique_ptr<Environment> MakeAtariEnvironment(const atari::Game& game,
                                                  const EnvironmentOptions& options,
                                                  std::uint64_t seed, std::uint64_t index) {
  return std::make_unique<AtariEnvironment>(
      NameOf(game), atari::MakeEmulator(ConsoleFor(game, options)), ProtocolRules(options),
      RandomStream(seed, "environment: no-ops", index),
      RandomStream(seed, "environment: sticky actions", index));
}

}  // namespace uper
