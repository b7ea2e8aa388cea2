#include "uper/envs/conformance.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "uper/base/error.h"
#include "uper/base/random.h"

namespace uper {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kSeed = 7;
constexpr std::uint64_t kIndex = 3;
constexpr std::byte kCanary{0xA5};
constexpr std::size_t kCanaryBytes = 64;

// The problems found, each once.
class Findings {
 public:
  void Expect(bool condition, const std::string& problem) {
    if (condition) return;
    if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) {
      problems_.push_back(problem);
    }
  }
  // `call` must throw an Error of the kind.
  template <typename Call>
  void ExpectError(ErrorKind kind, const Call& call, const std::string& problem) {
    try {
      call();
      Expect(false, problem);
    } catch (const Error& error) {
      Expect(error.kind() == kind, problem + " (thrown with another kind: " + error.what() + ")");
    }
  }

  std::vector<std::string> Take() { return std::move(problems_); }

 private:
  std::vector<std::string> problems_;
};

// One observation with canaries on both sides.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(std::size_t bytes) : memory_(bytes + 2 * kCanaryBytes, kCanary) {}

  std::span<std::byte> observation() {
    return std::span(memory_).subspan(kCanaryBytes, memory_.size() - 2 * kCanaryBytes);
  }
  void Fill(std::byte value) {
    const auto inside = observation();
    std::fill(inside.begin(), inside.end(), value);
  }
  bool intact() const {
    const auto is_canary = [](std::byte byte) { return byte == kCanary; };
    return std::all_of(memory_.begin(), memory_.begin() + kCanaryBytes, is_canary) &&
           std::all_of(memory_.end() - kCanaryBytes, memory_.end(), is_canary);
  }

 private:
  Bytes memory_;
};

// The result of one event (a reset or a step).
struct Event {
  bool reset = false;
  TimeStep step;
  Bytes observation;
};

bool SameNumber(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool Same(const Event& a, const Event& b) {
  return a.reset == b.reset && SameNumber(a.step.reward, b.step.reward) &&
         SameNumber(a.step.discount, b.step.discount) && a.step.terminated == b.step.terminated &&
         a.step.truncated == b.step.truncated && a.step.noisy == b.step.noisy &&
         a.step.frames == b.step.frames && a.observation == b.observation;
}

bool Same(std::span<const Event> a, std::span<const Event> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Event& x, const Event& y) { return Same(x, y); });
}

// Plays an environment: it resets when needed and else takes the action of a random policy. The
// policy depends on the number of the event alone, so a continuation chooses like the original.
class Player {
 public:
  // `fill` is in the buffer before each event; `first` is the number of the first event.
  Player(Environment& environment, std::byte fill, int first = 0, bool in_episode = false)
      : environment_(environment),
        fill_(fill),
        buffer_(environment.spec().observation_bytes()),
        number_(first),
        in_episode_(in_episode) {}

  Event Next() {
    buffer_.Fill(fill_);
    Event event{.reset = !in_episode_};
    if (event.reset) {
      environment_.Reset(buffer_.observation());
    } else {
      event.step = environment_.Step(Action(), buffer_.observation());
    }
    in_episode_ = event.reset || !event.step.last();
    ++number_;
    const auto seen = buffer_.observation();
    event.observation.assign(seen.begin(), seen.end());
    return event;
  }
  std::vector<Event> Next(int count) {
    std::vector<Event> events(static_cast<std::size_t>(count));
    for (Event& event : events) event = Next();
    return events;
  }

  int number() const { return number_; }
  bool in_episode() const { return in_episode_; }
  bool intact() const { return buffer_.intact(); }

 private:
  int Action() const {
    RandomStream stream(kSeed, "conformance policy", static_cast<std::uint64_t>(number_));
    return static_cast<int>(stream.UniformInt(environment_.spec().actions));
  }

  Environment& environment_;
  const std::byte fill_;
  GuardedBuffer buffer_;
  int number_;
  bool in_episode_;
};

class Suite {
 public:
  Suite(const EnvironmentFactory& make, const ConformanceOptions& options)
      : make_(make), options_(options) {}

  std::vector<std::string> Run() {
    CheckSpec();
    const std::vector<Event> reference = CheckPlay();
    CheckSeeds(reference);
    CheckRefusals(reference);
    CheckOrder();
    CheckSaving(reference);
    CheckUnstartedState();
    CheckDamagedStates();
    return findings_.Take();
  }

 private:
  std::unique_ptr<Environment> Make() { return make_(kSeed, kIndex); }

  void CheckSpec() {
    const auto environment = Make();
    const EnvironmentSpec& spec = environment->spec();
    findings_.Expect(!spec.name.empty(), "the spec has no name");
    findings_.Expect(spec.actions > 0, "the spec has no actions");
    findings_.Expect(spec.observation_bytes() > 0, "observations are empty");
    findings_.Expect(spec.element_min <= spec.element_max, "the element range is empty");
    findings_.Expect(spec.frame_stack >= 1, "the stack is empty");
  }

  std::vector<Event> CheckPlay() {
    const auto environment = Make();
    Player player(*environment, std::byte{0xFF});
    std::vector<Event> events = player.Next(options_.steps);
    findings_.Expect(player.intact(), "memory beside the observation was written");
    for (const Event& event : events) {
      CheckStep(event.step, environment->spec());
      CheckElements(event.observation, environment->spec());
    }
    return events;
  }

  void CheckStep(const TimeStep& step, const EnvironmentSpec& spec) {
    findings_.Expect(!(step.terminated && step.truncated), "a step terminated and truncated");
    findings_.Expect(!step.terminated || step.discount == 0, "discount not 0 at a termination");
    findings_.Expect(step.terminated || options_.has_lives || step.discount == 1,
                     "discount not 1 without a termination");
    findings_.Expect(step.discount == 0 || step.discount == 1, "discount neither 0 nor 1");
    findings_.Expect(std::isfinite(step.reward), "a reward is not finite");
    findings_.Expect(step.frames >= 1, "a step without frames");
    findings_.Expect(step.frames <= spec.max_frames_per_step,
                     "a step of more frames than the spec says");
  }

  void CheckElements(std::span<const std::byte> observation, const EnvironmentSpec& spec) {
    for (std::size_t i = 0; i < observation.size(); i += spec.element_bytes()) {
      double value = std::to_integer<int>(observation[i]);
      if (spec.element == EnvironmentSpec::Element::kFloat32) {
        float element;
        std::memcpy(&element, observation.data() + i, sizeof(element));
        value = element;
      }
      findings_.Expect(spec.element_min <= value && value <= spec.element_max,
                       "an element is out of range, or a byte was not written");
    }
  }

  void CheckSeeds(std::span<const Event> reference) {
    const auto play = [&](std::uint64_t seed, std::uint64_t index) {
      const auto environment = make_(seed, index);
      return Player(*environment, std::byte{0}).Next(options_.steps);
    };
    findings_.Expect(Same(reference, play(kSeed, kIndex)),
                     "equal seed and index play differently, or a byte was not written");
    if (!options_.is_random) return;
    findings_.Expect(!Same(reference, play(kSeed, kIndex + 1)), "another index plays alike");
    findings_.Expect(!Same(reference, play(kSeed + 1, kIndex)), "another seed plays alike");
  }

  // Refused calls between the events of a play must throw and change nothing.
  void CheckRefusals(std::span<const Event> reference) {
    const auto environment = Make();
    Player player(*environment, std::byte{0});
    std::vector<Event> events;
    for (std::size_t i = 0; i < reference.size(); ++i) {
      events.push_back(player.Next());
      TryBadBuffers(*environment);
      if (player.in_episode()) TryBadActions(*environment);
      if (!player.in_episode()) TryStepWithoutEpisode(*environment);
    }
    findings_.Expect(Same(reference, events), "a refused call changed the play");
  }

  void TryBadBuffers(Environment& environment) {
    const std::size_t right = environment.spec().observation_bytes();
    Bytes memory(right + kCanaryBytes);  // room, in case a wrong size is accepted
    for (const std::size_t wrong : {std::size_t{0}, right - 1, right + 1}) {
      const auto buffer = std::span(memory).first(wrong);
      findings_.ExpectError(
          ErrorKind::kInternal, [&] { environment.Reset(buffer); },
          "Reset() accepts a buffer of a wrong size");
      findings_.ExpectError(
          ErrorKind::kInternal, [&] { environment.Step(0, buffer); },
          "Step() accepts a buffer of a wrong size");
    }
  }

  void TryBadActions(Environment& environment) {
    GuardedBuffer buffer(environment.spec().observation_bytes());
    for (const int action : {-1, environment.spec().actions, 1 << 30}) {
      findings_.ExpectError(
          ErrorKind::kInternal, [&] { environment.Step(action, buffer.observation()); },
          "an action out of range is accepted");
    }
  }

  void TryStepWithoutEpisode(Environment& environment) {
    GuardedBuffer buffer(environment.spec().observation_bytes());
    findings_.ExpectError(
        ErrorKind::kInternal, [&] { environment.Step(0, buffer.observation()); },
        "a step without an episode is accepted");
  }

  void CheckOrder() {
    const auto environment = Make();
    TryStepWithoutEpisode(*environment);
    GuardedBuffer buffer(environment->spec().observation_bytes());
    environment->Reset(buffer.observation());
    environment->Reset(buffer.observation());  // in mid-episode: allowed
    environment->Step(0, buffer.observation());
  }

  void CheckSaving(std::span<const Event> reference) {
    const auto original = Make();
    Player player(*original, std::byte{0});
    std::vector<Event> events;
    const int stride = std::max(1, options_.steps / 2 / std::max(1, options_.save_points));
    for (int i = 0; i < options_.steps; ++i) {
      events.push_back(player.Next());
      if (i < options_.steps / 2 && i % stride == 0) {
        CheckContinuation(*original, player, reference.subspan(static_cast<std::size_t>(i) + 1));
      }
    }
    findings_.Expect(Same(reference, events), "saving a state changed the play");
  }

  // Restores into a new environment and into one that has played something else before.
  void CheckContinuation(const Environment& original, const Player& player,
                         std::span<const Event> future) {
    const Bytes state = original.SaveState();
    const int count = static_cast<int>(future.size());
    for (const int played_before : {0, 17}) {
      const auto copy = Make();
      Player(*copy, std::byte{0}, 1'000'000).Next(played_before);
      copy->RestoreState(state);
      findings_.Expect(copy->SaveState() == state, "a restored state is saved differently");
      if (!player.in_episode()) TryStepWithoutEpisode(*copy);
      Player continued(*copy, std::byte{0}, player.number(), player.in_episode());
      findings_.Expect(Same(future, Continue(continued, count)),
                       "a restored environment continues differently");
    }
  }

  // Plays a restored environment; the play is shorter if the environment sees no running episode.
  static std::vector<Event> Continue(Player& player, int count) {
    try {
      return player.Next(count);
    } catch (const Error&) {
      return {};
    }
  }

  void CheckUnstartedState() {
    const Bytes state = Make()->SaveState();
    const auto copy = Make();
    Player(*copy, std::byte{0}).Next(5);
    copy->RestoreState(state);
    TryStepWithoutEpisode(*copy);
    const auto fresh = Make();
    findings_.Expect(Same(Player(*copy, std::byte{0}).Next(options_.steps),
                          Player(*fresh, std::byte{0}).Next(options_.steps)),
                     "the state before the first Reset() continues differently");
  }

  void CheckDamagedStates() {
    const auto original = Make();
    Player player(*original, std::byte{0});
    for (int point = 0; point < 3; ++point) {
      player.Next(options_.steps / 8);
      const Bytes state = original->SaveState();
      if (point == 0) TryWrongLengths(state);
      for (std::size_t i = 0; i < state.size(); i += Stride(state)) {
        Bytes flipped = state;
        flipped[i] ^= static_cast<std::byte>(1 << (i % 8));
        TryFlippedState(flipped);
      }
    }
  }

  // Bytes between two places of damage.
  std::size_t Stride(const Bytes& state) const {
    if (options_.damaged_states == 0) return 1;
    return 1 + state.size() / static_cast<std::size_t>(options_.damaged_states);
  }

  void TryWrongLengths(const Bytes& state) {
    const auto environment = Make();
    for (std::size_t length = 0; length < state.size(); length += Stride(state)) {
      const auto start = std::span(state).first(length);
      findings_.ExpectError(
          ErrorKind::kCorrupt, [&] { environment->RestoreState(start); },
          "a truncated state is accepted");
    }
    Bytes longer = state;
    longer.push_back(std::byte{0});
    findings_.ExpectError(
        ErrorKind::kCorrupt, [&] { environment->RestoreState(longer); },
        "a state that is too long is accepted");
  }

  // A damaged state may be possible by chance; then it must play without touching other memory.
  // Refused or not, the environment can start afresh.
  void TryFlippedState(const Bytes& state) {
    const auto environment = Make();
    try {
      environment->RestoreState(state);
    } catch (const Error& error) {
      findings_.Expect(
          error.kind() == ErrorKind::kCorrupt,
          std::string("a damaged state is refused with another kind: ") + error.what());
    }
    Player player(*environment, std::byte{0}, 0, /*in_episode=*/true);
    Continue(player, 20);
    Player afresh(*environment, std::byte{0});
    afresh.Next(5);
    findings_.Expect(player.intact() && afresh.intact(),
                     "after a damaged state, memory beside the observation was written");
  }

  const EnvironmentFactory& make_;
  const ConformanceOptions options_;
  Findings findings_;
};

}  // namespace

std::vector<std::string> ConformanceProblems(const EnvironmentFactory& make,
                                             const ConformanceOptions& options) {
  return Suite(make, options).Run();
}

}  // namespace uper
