#include "uper/envs/wrappers/noisy_channels.h"

#include <cstring>

namespace uper {
namespace {

constexpr std::size_t kWordBytes = 8;

// Copies whole words, so it may write up to seven bytes more. Much faster than a memcpy of a few
// bytes.
void CopyByWords(const std::byte* from, std::size_t bytes, std::byte* to) {
  for (std::size_t i = 0; i < bytes; i += kWordBytes) std::memcpy(to + i, from + i, kWordBytes);
}

// Random bits of a stream, 32 per draw.
class BitSource {
 public:
  explicit BitSource(RandomStream& stream) : stream_(stream) {}

  bool Next() {
    if (left_ == 0) {
      word_ = stream_.NextUint32();
      left_ = 32;
    }
    --left_;
    return (word_ >> left_ & 1) != 0;
  }

 private:
  RandomStream& stream_;
  std::uint32_t word_ = 0;
  int left_ = 0;
};

// Writes 0 or 1 as an element. Returns the place of the next element.
std::byte* WriteBit(bool bit, EnvironmentSpec::Element element, std::byte* to) {
  if (element == EnvironmentSpec::Element::kUint8) {
    *to = static_cast<std::byte>(bit);
    return to + 1;
  }
  const float value = bit ? 1.0f : 0.0f;
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

}  // namespace

NoisyChannels::NoisyChannels(std::unique_ptr<Environment> wrapped, int channels,
                             const RandomStream& stream)
    : EnvironmentWrapper(std::move(wrapped)),
      spec_(inner().spec()),
      clean_cell_bytes_(spec_.element_bytes() * static_cast<std::size_t>(spec_.channels)),
      noisy_channels_(channels),
      stream_(stream),
      clean_(spec_.observation_bytes() + kWordBytes) {
  UPER_CHECK(channels > 0, "no channel to add");
  UPER_CHECK(spec_.element_min <= 0 && spec_.element_max >= 1, "0 and 1 must be in range");
  spec_.channels += channels;
  merged_.resize(spec_.observation_bytes() + kWordBytes);
}

void NoisyChannels::DoReset(std::span<std::byte> observation) {
  EnvironmentWrapper::DoReset(clean());
  Merge(observation);
}

TimeStep NoisyChannels::DoStep(int action, std::span<std::byte> observation) {
  const TimeStep step = EnvironmentWrapper::DoStep(action, clean());
  Merge(observation);
  return step;
}

// Bytes that a copy writes beyond its cell are overwritten by the next element.
void NoisyChannels::Merge(std::span<std::byte> observation) {
  BitSource bits(stream_);
  const std::byte* from = clean_.data();
  std::byte* to = merged_.data();
  for (int cell = 0; cell < spec_.height * spec_.width; ++cell) {
    CopyByWords(from, clean_cell_bytes_, to);
    from += clean_cell_bytes_;
    to += clean_cell_bytes_;
    for (int i = 0; i < noisy_channels_; ++i) to = WriteBit(bits.Next(), spec_.element, to);
  }
  std::memcpy(observation.data(), merged_.data(), observation.size());
}

void NoisyChannels::DoSaveState(ByteWriter& writer) const {
  EnvironmentWrapper::DoSaveState(writer);
  writer.Write(stream_.position());
}

void NoisyChannels::DoRestoreState(ByteReader& reader) {
  EnvironmentWrapper::DoRestoreState(reader);
  stream_.set_position(reader.Read<std::uint64_t>());
}

}  // namespace uper
