#include "uper/replay/storage/mask_store.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "uper/base/check.h"

namespace uper {

void MaskStoreOptions::Validate() const {
  if (members < 1 || members > 64) {
    throw Error(ErrorKind::kUsage, "members must lie in [1, 64], not " + std::to_string(members));
  }
  if (!(probability >= 0 && probability <= 1)) {
    throw Error(ErrorKind::kUsage,
                "mask probability must lie in [0, 1], not " + std::to_string(probability));
  }
}

MaskStore::MaskStore(std::size_t capacity, const MaskStoreOptions& options, RandomStream stream)
    : options_((options.Validate(), options)),
      ring_{capacity},
      threshold_(static_cast<std::uint64_t>(std::llround(options.probability * 0x1p32))),
      stream_(stream),
      bytes_(capacity * bytes_per_mask(), 0) {
  UPER_CHECK(capacity >= 1, "a mask store needs slots");
}

void MaskStore::Draw(std::uint64_t id) {
  std::uint64_t mask = 0;
  for (std::size_t k = 0; k < options_.members; ++k) {
    mask |= std::uint64_t{stream_.NextUint32() < threshold_} << k;
  }
  std::uint8_t* bytes = &bytes_[OffsetOf(id)];
  for (std::size_t b = 0; b < bytes_per_mask(); ++b) {
    bytes[b] = static_cast<std::uint8_t>(mask >> (8 * b));
  }
}

std::uint64_t MaskStore::Get(std::uint64_t id) const {
  const std::uint8_t* bytes = &bytes_[OffsetOf(id)];
  std::uint64_t mask = 0;
  for (std::size_t b = 0; b < bytes_per_mask(); ++b) mask |= std::uint64_t{bytes[b]} << (8 * b);
  return mask;
}

MaskStoreState MaskStore::GetState(std::uint64_t first, std::uint64_t next) const {
  UPER_CHECK(first <= next && next - first <= ring_.capacity, "more masks than there are slots");
  MaskStoreState state{.first_id = first, .rows = {}, .stream_position = stream_.position()};
  state.rows.reserve((next - first) * bytes_per_mask());
  for (std::uint64_t id = first; id < next; ++id) {
    const std::uint8_t* bytes = &bytes_[OffsetOf(id)];
    state.rows.insert(state.rows.end(), bytes, bytes + bytes_per_mask());
  }
  return state;
}

void MaskStore::SetState(const MaskStoreState& state, std::uint64_t first, std::uint64_t next) {
  if (state.first_id != first || next < first || next - first > ring_.capacity ||
      state.rows.size() != (next - first) * bytes_per_mask()) {
    throw Error(ErrorKind::kCorrupt, "stored masks do not match the replay buffer");
  }
  std::fill(bytes_.begin(), bytes_.end(), std::uint8_t{0});
  for (std::uint64_t id = first; id < next; ++id) {
    std::copy_n(&state.rows[(id - first) * bytes_per_mask()], bytes_per_mask(),
                &bytes_[OffsetOf(id)]);
  }
  stream_.set_position(state.stream_position);
}

void MaskStore::CheckValid() const {
  if (options_.members == 64) return;
  for (std::size_t slot = 0; slot < ring_.capacity; ++slot) {
    UPER_CHECK(Get(slot) >> options_.members == 0, "a mask has more bits than members");
  }
}

}  // namespace uper
