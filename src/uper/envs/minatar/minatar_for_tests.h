#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "uper/envs/minatar/minatar_game.h"

namespace uper::minatar {

// Test helper: returns the results that a test has set, by purpose, and counts the draws.
class ScriptedRandom final : public GameRandom {
 public:
  // Sets the result of all later draws of the purpose: a bool as 0 or 1.
  void Always(DrawPurpose purpose, int answer) { answers_[Index(purpose)] = answer; }
  int Count(DrawPurpose purpose) const { return counts_[Index(purpose)]; }

  bool Chance(DrawPurpose purpose, double) override { return Answer(purpose) != 0; }
  int Below(DrawPurpose purpose, int) override { return Answer(purpose); }
  void Save(ByteWriter&) const override {}
  void Restore(ByteReader&) override {}

 private:
  static std::size_t Index(DrawPurpose purpose) { return static_cast<std::size_t>(purpose); }
  int Answer(DrawPurpose purpose) {
    ++counts_[Index(purpose)];
    return answers_[Index(purpose)];
  }

  std::array<int, kPurposeCount> answers_{};
  std::array<int, kPurposeCount> counts_{};
};

// Test helper: a game whose draws a test sets and whose cells it can read.
class GameDriver {
 public:
  explicit GameDriver(const std::string& name, bool ramping = true)
      : game_(MakeGame(name, ramping)), frame_(std::size_t{100} * game_->channels()) {}

  ScriptedRandom& random() { return random_; }

  void Start() {
    game_->Start(random_);
    steps_ = 0;
    last_ = {};
    Look();
  }
  // Plays the action `times` times, or until the game is over; returns the sum of the rewards.
  int Act(GameAction action, int times = 1) {
    int reward = 0;
    for (int i = 0; i < times && !last_.over; ++i) {
      last_ = game_->Act(action, random_);
      reward += last_.reward;
      ++steps_;
    }
    Look();
    return reward;
  }
  // Plays random actions of the list until `done`. Whenever the game is over, it restores an
  // earlier state. Only for games without draws, because draws are not restored. Returns false if
  // that takes too long.
  bool SurviveUntil(const std::vector<GameAction>& actions, const std::function<bool()>& done);

  bool over() const { return last_.over; }
  int steps() const { return steps_; }
  bool Has(int row, int column, int channel) const {
    const int cell = (row * 10 + column) * game_->channels() + channel;
    return frame_[static_cast<std::size_t>(cell)] != std::byte{0};
  }
  // Cells of a channel as "row,column" in reading order, with spaces between.
  std::string Cells(int channel) const {
    std::string cells;
    for (int cell = 0; cell < 100; ++cell) {
      if (!Has(cell / 10, cell % 10, channel)) continue;
      if (!cells.empty()) cells.push_back(' ');
      cells.push_back(static_cast<char>('0' + cell / 10));
      cells.push_back(',');
      cells.push_back(static_cast<char>('0' + cell % 10));
    }
    return cells;
  }
  int Count(int channel) const {
    int count = 0;
    for (int cell = 0; cell < 100; ++cell) count += Has(cell / 10, cell % 10, channel) ? 1 : 0;
    return count;
  }

 private:
  void Look() {
    Frame frame(frame_, game_->channels());
    game_->Draw(frame);
  }
  std::vector<std::byte> Save() const {
    std::vector<std::byte> state;
    ByteWriter writer(state);
    game_->Save(writer);
    return state;
  }
  void Restore(const std::vector<std::byte>& state) {
    ByteReader reader(state);
    game_->Restore(reader);
    last_ = {};
    Look();
  }

  std::unique_ptr<MinAtarGame> game_;
  ScriptedRandom random_;
  std::vector<std::byte> frame_;
  GameStep last_;
  int steps_ = 0;
};

inline bool GameDriver::SurviveUntil(const std::vector<GameAction>& actions,
                                     const std::function<bool()>& done) {
  constexpr int kStride = 8;  // steps between the states that are kept
  RandomStream policy(1, "survive");
  std::deque<std::vector<std::byte>> past = {Save()};
  for (int attempt = 0; attempt < 1'000'000; ++attempt) {
    for (int i = 0; i < kStride && !over(); ++i) {
      if (done()) return true;
      Act(actions[policy.UniformInt(actions.size())]);
    }
    if (!over()) {
      past.push_back(Save());
      continue;
    }
    // Sometimes goes further back, because the game may be lost already in the last state.
    while (past.size() > 1 && policy.Bernoulli(0.3)) past.pop_back();
    Restore(past.back());
  }
  return false;
}

}  // namespace uper::minatar
