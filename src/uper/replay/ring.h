#pragma once

#include <cstddef>
#include <cstdint>

#include "uper/core/host_device.h"

namespace uper {

// Arithmetic of a ring of slots, on the host and on the GPU. Items have consecutive ids, and an
// item lives in slot id % capacity. The age rank of the oldest item is 0.
struct Ring {
  std::size_t capacity = 1;

  UPER_HOST_DEVICE std::size_t SlotOf(std::uint64_t id) const {
    return static_cast<std::size_t>(id % capacity);
  }
  // The slot of the item with this age rank. REQUIRES: first_slot and age_rank < capacity.
  UPER_HOST_DEVICE std::size_t SlotAt(std::size_t first_slot, std::size_t age_rank) const {
    const std::size_t slot = first_slot + age_rank;
    return slot < capacity ? slot : slot - capacity;
  }
  // The age rank of the item in this slot: the inverse of SlotAt().
  UPER_HOST_DEVICE std::size_t RankOf(std::size_t first_slot, std::size_t slot) const {
    return slot >= first_slot ? slot - first_slot : slot + capacity - first_slot;
  }
};

}  // namespace uper
