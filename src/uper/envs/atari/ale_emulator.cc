// The only file that uses the Arcade Learning Environment.
#include <ale/ale_interface.hpp>
#include <ale/emucore/M6502.hxx>
#include <ale/emucore/System.hxx>
#include <ale/emucore/TIA.hxx>
#include <algorithm>
#include <cstring>
#include <iterator>

#include "uper/base/error.h"
#include "uper/base/files/md5.h"
#include "uper/envs/atari/emulator.h"

namespace uper::atari {
namespace {

using ale::stella::M6502;
using ale::stella::System;
using ale::stella::TIA;

// ALE saves most of a console's state, but not the picture, the masks of the objects on the screen
// and the state of the bus. (A frame with few lines shows the rest of the frame before the last.)
// They decide the pixels of the next frames, so we save them here. The members are private: in
// standard C++, only arguments of an explicit instantiation may name them without a change of ALE's
// sources. The instantiation for a tag defines the MemberOf() that is declared for that tag.
template <typename Tag, auto Member>
struct Reveal {
  friend auto MemberOf(Tag) { return Member; }
};
struct BallMask {};
auto MemberOf(BallMask);
template struct Reveal<BallMask, &TIA::myCurrentBLMask>;
struct Missile0Mask {};
auto MemberOf(Missile0Mask);
template struct Reveal<Missile0Mask, &TIA::myCurrentM0Mask>;
struct Missile1Mask {};
auto MemberOf(Missile1Mask);
template struct Reveal<Missile1Mask, &TIA::myCurrentM1Mask>;
struct Player0Mask {};
auto MemberOf(Player0Mask);
template struct Reveal<Player0Mask, &TIA::myCurrentP0Mask>;
struct Player1Mask {};
auto MemberOf(Player1Mask);
template struct Reveal<Player1Mask, &TIA::myCurrentP1Mask>;
struct PlayfieldMask {};
auto MemberOf(PlayfieldMask);
template struct Reveal<PlayfieldMask, &TIA::myCurrentPFMask>;
struct FramePointer {};
auto MemberOf(FramePointer);
template struct Reveal<FramePointer, &TIA::myFramePointer>;
struct PartialFrame {};
auto MemberOf(PartialFrame);
template struct Reveal<PartialFrame, &TIA::myPartialFrameFlag>;
struct FrameGrayed {};
auto MemberOf(FrameGrayed);
template struct Reveal<FrameGrayed, &TIA::myFrameGreyed>;
struct DataBus {};
auto MemberOf(DataBus);
template struct Reveal<DataBus, &System::myDataBusState>;
struct LastAccessWasRead {};
auto MemberOf(LastAccessWasRead);
template struct Reveal<LastAccessWasRead, &M6502::myLastAccessWasRead>;
struct BallTable {};
auto MemberOf(BallTable);
template struct Reveal<BallTable, &TIA::ourBallMaskTable>;
struct DisabledTable {};
auto MemberOf(DisabledTable);
template struct Reveal<DisabledTable, &TIA::ourDisabledMaskTable>;
struct MissileTable {};
auto MemberOf(MissileTable);
template struct Reveal<MissileTable, &TIA::ourMissleMaskTable>;
struct PlayerTable {};
auto MemberOf(PlayerTable);
template struct Reveal<PlayerTable, &TIA::ourPlayerMaskTable>;
struct PlayfieldTable {};
auto MemberOf(PlayfieldTable);
template struct Reveal<PlayfieldTable, &TIA::ourPlayfieldTable>;

// A pointer into one of the mask tables, as a number that means the same in every process.
struct MaskPlace {
  std::uint8_t table = 0;
  std::uint32_t offset = 0;  // bytes
};

template <typename Table>
std::span<const std::byte> BytesOf(const Table* table) {
  return std::as_bytes(std::span(table, 1));
}

std::array<std::span<const std::byte>, 5> MaskTables() {
  return {BytesOf(MemberOf(BallTable{})), BytesOf(MemberOf(DisabledTable{})),
          BytesOf(MemberOf(MissileTable{})), BytesOf(MemberOf(PlayerTable{})),
          BytesOf(MemberOf(PlayfieldTable{}))};
}

MaskPlace PlaceOf(const void* mask) {
  const auto* pointer = static_cast<const std::byte*>(mask);
  const auto tables = MaskTables();
  for (std::size_t i = 0; i < tables.size(); ++i) {
    const std::byte* begin = tables[i].data();
    if (!std::less<>{}(pointer, begin) && std::less<>{}(pointer, begin + tables[i].size())) {
      return {static_cast<std::uint8_t>(i), static_cast<std::uint32_t>(pointer - begin)};
    }
  }
  throw Error(ErrorKind::kInternal, "ALE: a mask outside of its tables");
}

template <typename Element>
const Element* PointerTo(const MaskPlace& place) {
  const auto table = MaskTables().at(place.table);
  if (place.offset >= table.size() || place.offset % sizeof(Element) != 0) {
    throw Error(ErrorKind::kCorrupt, "a saved state of the Atari console is damaged");
  }
  return reinterpret_cast<const Element*>(table.data() + place.offset);
}

// The state that ALE does not save.
struct HiddenState {
  std::array<MaskPlace, 6> masks;
  std::int64_t frame_position = 0;
  bool partial_frame = false;
  bool frame_grayed = false;
  std::uint8_t data_bus = 0;
  bool last_access_was_read = false;
  std::vector<std::uint8_t> frame, previous_frame;
};

void Write(const HiddenState& state, ByteWriter& writer) {
  for (const MaskPlace& mask : state.masks) {
    writer.Write(mask.table);
    writer.Write(mask.offset);
  }
  writer.Write(state.frame_position);
  writer.Write(state.partial_frame);
  writer.Write(state.frame_grayed);
  writer.Write(state.data_bus);
  writer.Write(state.last_access_was_read);
  writer.WriteBlock(std::as_bytes(std::span(state.frame)));
  writer.WriteBlock(std::as_bytes(std::span(state.previous_frame)));
}

std::vector<std::uint8_t> ReadFrame(ByteReader& reader, std::size_t bytes) {
  const auto block = reader.ReadBlock();
  if (block.size() != bytes) {
    throw Error(ErrorKind::kCorrupt, "a saved Atari state has a picture of another size");
  }
  const auto* first = reinterpret_cast<const std::uint8_t*>(block.data());
  return {first, first + block.size()};
}

HiddenState ReadHidden(ByteReader& reader, std::size_t frame_bytes) {
  HiddenState state;
  for (MaskPlace& mask : state.masks) {
    mask.table = reader.ReadInRange<std::uint8_t>(0, 4);
    mask.offset = reader.Read<std::uint32_t>();
  }
  state.frame_position = reader.ReadInRange<std::int64_t>(0, 160 * 300);
  state.partial_frame = reader.Read<bool>();
  state.frame_grayed = reader.Read<bool>();
  state.data_bus = reader.Read<std::uint8_t>();
  state.last_access_was_read = reader.Read<bool>();
  state.frame = ReadFrame(reader, frame_bytes);
  state.previous_frame = ReadFrame(reader, frame_bytes);
  return state;
}

HiddenState HiddenOf(System& system, std::size_t frame_bytes) {
  TIA& tia = system.tia();
  const std::uint8_t* frame = tia.currentFrameBuffer();
  const std::uint8_t* previous = tia.previousFrameBuffer();
  return {.masks = {PlaceOf(tia.*MemberOf(BallMask{})), PlaceOf(tia.*MemberOf(Missile0Mask{})),
                    PlaceOf(tia.*MemberOf(Missile1Mask{})), PlaceOf(tia.*MemberOf(Player0Mask{})),
                    PlaceOf(tia.*MemberOf(Player1Mask{})), PlaceOf(tia.*MemberOf(PlayfieldMask{}))},
          .frame_position = tia.*MemberOf(FramePointer{}) - frame,
          .partial_frame = tia.*MemberOf(PartialFrame{}),
          .frame_grayed = tia.*MemberOf(FrameGrayed{}),
          .data_bus = system.*MemberOf(DataBus{}),
          .last_access_was_read = system.m6502().*MemberOf(LastAccessWasRead{}),
          .frame = {frame, frame + frame_bytes},
          .previous_frame = {previous, previous + frame_bytes}};
}

void SetHidden(System& system, const HiddenState& state) {
  TIA& tia = system.tia();
  tia.*MemberOf(BallMask{}) = PointerTo<std::uint8_t>(state.masks[0]);
  tia.*MemberOf(Missile0Mask{}) = PointerTo<std::uint8_t>(state.masks[1]);
  tia.*MemberOf(Missile1Mask{}) = PointerTo<std::uint8_t>(state.masks[2]);
  tia.*MemberOf(Player0Mask{}) = PointerTo<std::uint8_t>(state.masks[3]);
  tia.*MemberOf(Player1Mask{}) = PointerTo<std::uint8_t>(state.masks[4]);
  tia.*MemberOf(PlayfieldMask{}) = PointerTo<std::uint32_t>(state.masks[5]);
  tia.*MemberOf(FramePointer{}) = tia.currentFrameBuffer() + state.frame_position;
  tia.*MemberOf(PartialFrame{}) = state.partial_frame;
  tia.*MemberOf(FrameGrayed{}) = state.frame_grayed;
  system.*MemberOf(DataBus{}) = state.data_bus;
  system.m6502().*MemberOf(LastAccessWasRead{}) = state.last_access_was_read;
  std::copy(state.frame.begin(), state.frame.end(), tia.currentFrameBuffer());
  std::copy(state.previous_frame.begin(), state.previous_frame.end(), tia.previousFrameBuffer());
}

template <typename Values>
std::string Listed(const Values& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

template <typename Values>
void RequireAvailable(const char* key, int value, const Values& available) {
  if (std::find(available.begin(), available.end(), static_cast<unsigned>(value)) !=
      available.end()) {
    return;
  }
  throw Error(ErrorKind::kUsage, std::string("environment.") + key + " = " + std::to_string(value) +
                                     ": the game has only " + Listed(available));
}

class AleEmulator final : public Emulator {
 public:
  explicit AleEmulator(const EmulatorOptions& options) : cached_reset_(options.cached_reset) {
    // The environment handles sticky actions, no-ops and the time limit.
    ale_.setFloat("repeat_action_probability", 0);
    ale_.setInt("random_seed", 1);
    ale_.setInt("max_num_frames_per_episode", 0);
    ale_.loadROM(options.rom);
    if (options.mode >= 0) {
      RequireAvailable("mode", options.mode, ale_.getAvailableModes());
      ale_.setMode(static_cast<ale::game_mode_t>(options.mode));
    }
    if (options.difficulty >= 0) {
      RequireAvailable("difficulty", options.difficulty, ale_.getAvailableDifficulties());
      ale_.setDifficulty(static_cast<ale::difficulty_t>(options.difficulty));
    }
    const ale::ActionVect codes =
        options.full_action_set ? ale_.getLegalActionSet() : ale_.getMinimalActionSet();
    actions_.assign(codes.begin(), codes.end());
    ReadPalette();
    height_ = static_cast<int>(ale_.getScreen().height());
    width_ = static_cast<int>(ale_.getScreen().width());
    // Makes ALE copy one pixel instead of all after every frame.
    if (!options.ale_copies) const_cast<ale::ALEScreen&>(ale_.getScreen()) = ale::ALEScreen(1, 1);
    if (cached_reset_) {
      ale_.reset_game();
      KeepStart();
    }
  }

  int height() const override { return height_; }
  int width() const override { return width_; }
  const Palette& palette() const override { return palette_; }
  const std::vector<int>& actions() const override { return actions_; }

  void Reset() override {
    if (cached_reset_) {
      GoTo(starts_[0]);
    } else {
      ale_.reset_game();
    }
  }
  void ResetAndIdle(int frames) override {
    if (!cached_reset_) return Emulator::ResetAndIdle(frames);
    const int known = std::min(frames, static_cast<int>(starts_.size()) - 1);
    GoTo(starts_[known]);
    for (int i = known; i < frames; ++i) {
      Idle();
      if (starts_.size() < kMostStarts) KeepStart();
    }
  }
  int Act(int action) override { return ale_.act(static_cast<ale::Action>(action)); }
  int lives() const override { return ale_.lives(); }
  bool game_over() const override { return ale_.game_over(/*with_truncation=*/false); }
  // Does not use ALE's copy, which a restored state does not have.
  std::span<const std::uint8_t> screen() const override {
    return {system().tia().currentFrameBuffer(), frame_bytes()};
  }
  // The next frame goes into other memory, unless it completes this one.
  bool screen_stays() const override { return !(system().tia().*MemberOf(PartialFrame{})); }

  // Adds an MD5 digest to the payload, because ALE does not check its input.
  void Save(ByteWriter& writer) const override {
    std::vector<std::byte> payload;
    ByteWriter inner(payload);
    inner.WriteText(ale_.cloneState(/*include_rng=*/true).serialize());
    Write(HiddenOf(system(), frame_bytes()), inner);
    inner.WriteBlock(ram());
    const Md5Digest digest = Md5(payload);
    writer.WriteBlock(payload);
    writer.WriteBlock(std::as_bytes(std::span(digest)));
  }
  void Restore(ByteReader& reader) override {
    const auto payload = reader.ReadBlock();
    const auto expected_digest = reader.ReadBlock();
    const Md5Digest digest = Md5(payload);
    if (!std::ranges::equal(expected_digest, std::as_bytes(std::span(digest)))) {
      throw Error(ErrorKind::kCorrupt, "a saved Atari state does not fit its checksum");
    }
    ByteReader inner(payload);
    const std::string state = inner.ReadText();
    const HiddenState hidden = ReadHidden(inner, frame_bytes());
    const auto expected_ram = inner.ReadBlock();
    inner.ExpectEnd();
    ale_.restoreState(ale::ALEState(state));
    SetHidden(system(), hidden);
    if (!std::ranges::equal(ram(), expected_ram)) {
      throw Error(ErrorKind::kCorrupt,
                  "a saved Atari state was restored with other memory: it is another game's");
    }
  }

 private:
  // A state from which a game can begin; about 80 KB.
  struct Start {
    ale::ALEState state;
    HiddenState hidden;
  };
  static constexpr std::size_t kMostStarts = 1 + 30;  // as many idle frames as dqn-zoo has

  void KeepStart() {
    starts_.push_back({ale_.cloneState(/*include_rng=*/true), HiddenOf(system(), frame_bytes())});
  }
  void GoTo(const Start& start) {
    ale_.restoreState(start.state);
    SetHidden(system(), start.hidden);
  }
  System& system() const { return ale_.theOSystem->console().system(); }
  std::size_t frame_bytes() const { return std::size_t{1} * height_ * width_; }
  std::span<const std::byte> ram() const {
    const ale::ALERAM& memory = ale_.getRAM();
    return std::as_bytes(std::span(memory.array(), memory.size()));
  }

  void ReadPalette() {
    std::array<std::uint8_t, 128> pixels;
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(2 * i);
    ale::ColourPalette& colors = ale_.theOSystem->colourPalette();
    std::array<std::uint8_t, 3 * 128> rgb;
    colors.applyPaletteRGB(rgb.data(), pixels.data(), pixels.size());
    std::memcpy(palette_.rgb.data(), rgb.data(), rgb.size());
    colors.applyPaletteGrayscale(palette_.gray.data(), pixels.data(), pixels.size());
  }

  // ALE's interface lacks const.
  mutable ale::ALEInterface ale_;
  const bool cached_reset_;
  int height_ = 0, width_ = 0;
  std::vector<int> actions_;
  Palette palette_;
  std::vector<Start> starts_;  // [idle frames]; of those that were played
};

}  // namespace

bool EmulatorAvailable() { return true; }

std::string EmulatorDescription() { return "ALE " ALE_VERSION; }

std::unique_ptr<Emulator> MakeEmulator(const EmulatorOptions& options) {
  static const bool silent = [] {
    ale::Logger::setMode(ale::Logger::Error);
    return true;
  }();
  static_cast<void>(silent);
  return std::make_unique<AleEmulator>(options);
}

}  // namespace uper::atari
