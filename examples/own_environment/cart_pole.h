#pragma once

#include "uper/base/random.h"
#include "uper/envs/environment.h"

// A pole stands on a cart that is pushed left or right at each step (Barto, Sutton and Anderson
// 1983, with the numbers of Gymnasium's CartPole-v1). Every step pays 1. The episode ends when the
// pole leans by more than 12 degrees or the cart leaves its track.
class CartPole final : public uper::Environment {
 public:
  explicit CartPole(const uper::RandomStream& stream) : stream_(stream) {}

  static uper::EnvironmentSpec Describe();
  const uper::EnvironmentSpec& spec() const override { return spec_; }

 protected:
  void DoReset(std::span<std::byte> observation) override;
  uper::TimeStep DoStep(int action, std::span<std::byte> observation) override;
  void DoSaveState(uper::ByteWriter& writer) const override;
  void DoRestoreState(uper::ByteReader& reader) override;

 private:
  // Observes the state as four floats.
  void Observe(std::span<std::byte> observation) const;

  const uper::EnvironmentSpec spec_ = Describe();
  uper::RandomStream stream_;
  double position_ = 0, velocity_ = 0;    // of the cart: m, m/s
  double angle_ = 0, turning_speed_ = 0;  // of the pole: rad, rad/s
};
