// For tests/test_atari.py: a game that is saved in its middle and goes on in another process.
//   atari_states GAME PROTOCOL SEED PLAYED CONTINUED FILE   plays, saves to FILE, goes on
//   atari_states GAME PROTOCOL SEED PLAYED CONTINUED FILE restore   restores and goes on
// Prints the MD5 digest of everything seen in each hundred steps that come after the saved state.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "uper/base/error.h"
#include "uper/base/files/md5.h"
#include "uper/base/random.h"
#include "uper/envs/registry.h"

namespace {

using uper::Environment;

constexpr int kStepsPerDigest = 100;

// Plays actions that depend on the number of the step alone and prints digests of what is seen.
class Player {
 public:
  Player(Environment& environment, std::uint64_t seed)
      : environment_(environment),
        seed_(seed),
        observation_(environment.spec().observation_bytes()) {}

  // Steps [begin, end); resets when an episode ended or none has begun.
  void Play(int begin, int end, bool print) {
    std::vector<std::byte> seen;
    uper::ByteWriter writer(seen);
    for (int number = begin; number < end; ++number) {
      uper::RandomStream stream(seed_, "test policy", static_cast<std::uint64_t>(number));
      const auto step = environment_.Step(
          static_cast<int>(stream.UniformInt(environment_.spec().actions)), observation_);
      writer.Write(step.reward);
      writer.Write(step.discount);
      writer.Write(step.terminated);
      writer.Write(step.truncated);
      writer.Write(step.frames);
      writer.WriteBlock(observation_);
      if (step.last()) Reset(writer);
      if ((number + 1 - begin) % kStepsPerDigest == 0) {
        if (print) std::cout << uper::Md5Text(uper::Md5(seen)) << "\n";
        seen.clear();
      }
    }
  }

  void Start() { environment_.Reset(observation_); }

 private:
  void Reset(uper::ByteWriter& writer) {
    environment_.Reset(observation_);
    writer.WriteBlock(observation_);
  }

  Environment& environment_;
  const std::uint64_t seed_;
  std::vector<std::byte> observation_;
};

std::vector<std::byte> ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

void WriteAll(const std::string& path, const std::vector<std::byte>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void Run(const std::vector<std::string>& words) {
  uper::EnvironmentOptions options;
  if (words.at(1) == "dopamine") options.protocol = uper::AtariProtocol::kDopamine;
  const std::uint64_t seed = std::stoull(words.at(2));
  const int played = std::stoi(words.at(3));
  const int end = played + std::stoi(words.at(4));
  const auto environment = uper::MakeEnvironment("atari/" + words.at(0), options, seed, 0);
  Player player(*environment, seed);
  if (words.size() > 6) {
    environment->RestoreState(ReadAll(words.at(5)));
  } else {
    player.Start();
    player.Play(0, played, /*print=*/false);
    WriteAll(words.at(5), environment->SaveState());
  }
  player.Play(played, end, /*print=*/true);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
