#include "cart_pole.h"

#include <cmath>
#include <cstring>
#include <numbers>

namespace {

constexpr double kGravity = 9.8;
constexpr double kPoleMass = 0.1, kTotalMass = 1.1;  // kg
constexpr double kHalfLength = 0.5;                  // of the pole, m
constexpr double kForce = 10;                        // N
constexpr double kSecondsPerStep = 0.02;
constexpr double kTrackEnd = 2.4;                              // m
constexpr double kLargestAngle = 12 * std::numbers::pi / 180;  // rad
constexpr double kLargestNumber = 1000;                        // no observation comes near it

}  // namespace

uper::EnvironmentSpec CartPole::Describe() {
  return {.name = "cart_pole",
          .actions = 2,  // push left, push right
          .channels = 4,
          .element = uper::EnvironmentSpec::Element::kFloat32,
          .element_min = -kLargestNumber,
          .element_max = kLargestNumber};
}

void CartPole::DoReset(std::span<std::byte> observation) {
  for (double* number : {&position_, &velocity_, &angle_, &turning_speed_}) {
    *number = 0.1 * stream_.Uniform() - 0.05;
  }
  Observe(observation);
}

uper::TimeStep CartPole::DoStep(int action, std::span<std::byte> observation) {
  const double force = action == 1 ? kForce : -kForce;
  const double sine = std::sin(angle_), cosine = std::cos(angle_);
  const double push =
      (force + kPoleMass * kHalfLength * turning_speed_ * turning_speed_ * sine) / kTotalMass;
  const double turning = (kGravity * sine - cosine * push) /
                         (kHalfLength * (4.0 / 3 - kPoleMass * cosine * cosine / kTotalMass));
  const double acceleration = push - kPoleMass * kHalfLength * turning * cosine / kTotalMass;
  position_ += kSecondsPerStep * velocity_;
  velocity_ += kSecondsPerStep * acceleration;
  angle_ += kSecondsPerStep * turning_speed_;
  turning_speed_ += kSecondsPerStep * turning;
  Observe(observation);
  const bool fell = std::abs(position_) > kTrackEnd || std::abs(angle_) > kLargestAngle;
  return {.reward = 1, .discount = fell ? 0.0 : 1.0, .terminated = fell};
}

void CartPole::Observe(std::span<std::byte> observation) const {
  const float numbers[] = {static_cast<float>(position_), static_cast<float>(velocity_),
                           static_cast<float>(angle_), static_cast<float>(turning_speed_)};
  std::memcpy(observation.data(), numbers, sizeof(numbers));
}

void CartPole::DoSaveState(uper::ByteWriter& writer) const {
  writer.Write(stream_.position());
  for (const double number : {position_, velocity_, angle_, turning_speed_}) writer.Write(number);
}

void CartPole::DoRestoreState(uper::ByteReader& reader) {
  stream_.set_position(reader.Read<std::uint64_t>());
  for (double* number : {&position_, &velocity_, &angle_, &turning_speed_}) {
    *number = reader.ReadInRange(-kLargestNumber, kLargestNumber);
  }
}
