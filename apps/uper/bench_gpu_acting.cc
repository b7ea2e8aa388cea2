#include "apps/uper/bench_gpu_acting.h"

#include <algorithm>

namespace uper {
namespace {

constexpr std::size_t kFrames = 4096;  // in the ring

}  // namespace

bool GpuActing::Suits(const NetworkSpec& network) {
  return network.input.type == InputType::kUint8 && network.input.layout == InputLayout::kPlanes;
}

GpuActing::GpuActing(GpuLearner& learner, std::span<const std::byte> pixels)
    : network_(learner.spec().network), pixels_(pixels.begin(), pixels.begin() + frame_bytes()) {
  replay_ = learner.MakeReplay(
      {.capacity = kFrames,
       .record_bytes = 2 * depth() * sizeof(std::uint32_t) + sizeof(GpuRecordTail),
       .observation_bytes = depth() * frame_bytes(),
       .stack_depth = depth(),
       .frame_bytes = frame_bytes(),
       .frame_capacity = kFrames,
       .draws = false});
}

void GpuActing::Act(int count) {
  next_frame_ += count;
  const GpuRecordSource frames{
      .first_id = next_frame_ > kFrames ? next_frame_ - kFrames : 0,
      .next_id = next_frame_,
      .read = [this](std::uint64_t begin, std::uint64_t end, std::span<std::byte> out) {
        for (std::uint64_t i = 0; i < end - begin; ++i) {
          std::copy(pixels_.begin(), pixels_.end(), out.begin() + i * frame_bytes());
        }
      }};
  replay_->Follow({}, frames);
  slots_.clear();
  for (int environment = 0; environment < count; ++environment) {
    for (int back = depth() - 1; back >= 0; --back) {
      const std::uint64_t frames_ago = std::uint64_t{1} * back * count + environment + 1;
      slots_.push_back(frames_ago > next_frame_
                           ? kGpuZeroSlot
                           : static_cast<std::uint32_t>((next_frame_ - frames_ago) % kFrames));
    }
  }
  q_.resize(std::size_t{1} * count * network_.actions);
  replay_->BeginActing(slots_, count);
  replay_->FinishActing(count, q_);
}

}  // namespace uper
