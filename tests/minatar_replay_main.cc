// Test tool of tests/test_minatar_*.py, not a program for users.
//
//   minatar_replay replay GAME RAMPING STICKY INPUT OUTPUT
//     Plays the actions of INPUT with the random draws recorded there, answered by purpose, and
//     writes what came of each. Fails when a draw is missing, left over or asked with another
//     range. INPUT: the block of events (a byte each: an action, or 255 to reset), the number of
//     draws (uint64), then each: purpose (uint8), range (int32; 0: a chance), value (float64).
//     OUTPUT, for each event: reward (float64), terminated, truncated (a byte each), the frame.
//   minatar_replay random GAME EPISODES SEED
//     Plays the random policy with our own draws; a line "return steps" for each episode.

#include <array>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/envs/minatar/minatar_environment.h"
#include "uper/envs/registry.h"
#include "uper/envs/wrappers/action_noise.h"

namespace uper {
namespace {

constexpr int kReset = 255;

struct RecordedDraw {
  int range;     // of an integer; 0: a chance
  double value;  // the integer, or the number in [0, 1) that decides the chance
};

// The recorded draws of each purpose that have not been asked for.
using Recording = std::array<std::deque<RecordedDraw>, kPurposeCount>;

// Answers with the next recorded draw of the purpose.
class RecordedRandom final : public GameRandom {
 public:
  explicit RecordedRandom(Recording& recording) : recording_(recording) {}

  bool Chance(DrawPurpose purpose, double probability) override {
    return Next(purpose, 0) < probability;
  }
  int Below(DrawPurpose purpose, int bound) override {
    return static_cast<int>(Next(purpose, bound));
  }
  void Save(ByteWriter&) const override {}
  void Restore(ByteReader&) override {}

 private:
  double Next(DrawPurpose purpose, int range) {
    auto& draws = recording_[static_cast<std::size_t>(purpose)];
    const std::string name = "draw of purpose " + std::to_string(static_cast<int>(purpose));
    UPER_CHECK(!draws.empty(), name + " was not recorded");
    const RecordedDraw draw = draws.front();
    draws.pop_front();
    UPER_CHECK(draw.range == range, name + " has range " + std::to_string(range) + ", recorded " +
                                        std::to_string(draw.range));
    return draw.value;
  }

  Recording& recording_;
};

std::vector<std::byte> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  UPER_CHECK(file.good(), "cannot read " + path);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  const auto bytes = std::as_bytes(std::span(content));
  return {bytes.begin(), bytes.end()};
}

void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  UPER_CHECK(file.good(), "cannot write " + path);
}

Recording ReadRecording(ByteReader& reader) {
  Recording recording;
  const auto count = reader.Read<std::uint64_t>();
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto purpose = reader.ReadInRange<std::uint8_t>(0, kPurposeCount - 1);
    const int range = reader.Read<std::int32_t>();
    recording[purpose].push_back({range, reader.Read<double>()});
  }
  reader.ExpectEnd();
  return recording;
}

std::vector<std::byte> Play(Environment& environment, std::span<const std::byte> events) {
  std::vector<std::byte> output;
  ByteWriter writer(output);
  std::vector<std::byte> frame(environment.spec().observation_bytes());
  for (const std::byte event : events) {
    const int action = std::to_integer<int>(event);
    TimeStep step;
    if (action == kReset) {
      environment.Reset(frame);
    } else {
      step = environment.Step(action, frame);
    }
    writer.Write(step.reward);
    writer.Write(step.terminated);
    writer.Write(step.truncated);
    output.insert(output.end(), frame.begin(), frame.end());
  }
  return output;
}

void Replay(const std::string& game, bool ramping, double sticky, const std::string& input,
            const std::string& output) {
  const std::vector<std::byte> bytes = ReadFile(input);
  ByteReader reader(bytes);
  const auto events = reader.ReadBlock();
  Recording recording = ReadRecording(reader);
  StickyActions environment(std::make_unique<MinAtarEnvironment>(
                                "minatar/" + game, game, ramping, /*minimal_actions=*/false,
                                std::make_unique<RecordedRandom>(recording)),
                            sticky, std::make_unique<RecordedRandom>(recording));
  WriteFile(output, Play(environment, events));
  for (const auto& draws : recording) {
    UPER_CHECK(draws.empty(), std::to_string(draws.size()) + " recorded draws were not asked for");
  }
}

void PlayRandomly(const std::string& game, int episodes, std::uint64_t seed) {
  const auto environment = MakeEnvironment("minatar/" + game, {}, seed, 0);
  RandomStream policy(seed, "random policy");
  std::vector<std::byte> frame(environment->spec().observation_bytes());
  for (int episode = 0; episode < episodes; ++episode) {
    environment->Reset(frame);
    double total = 0;
    int steps = 0;
    TimeStep step;
    do {
      const auto action =
          policy.UniformInt(static_cast<std::uint64_t>(environment->spec().actions));
      step = environment->Step(static_cast<int>(action), frame);
      total += step.reward;
      ++steps;
    } while (!step.last());
    std::cout << total << ' ' << steps << '\n';
  }
}

int Run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 6 && arguments[0] == "replay") {
    Replay(arguments[1], arguments[2] == "1", std::stod(arguments[3]), arguments[4], arguments[5]);
  } else if (arguments.size() == 4 && arguments[0] == "random") {
    PlayRandomly(arguments[1], std::stoi(arguments[2]), std::stoull(arguments[3]));
  } else {
    std::cerr << "see the top of tests/minatar_replay_main.cc\n";
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace uper

int main(int argc, char** argv) {
  try {
    return uper::Run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
