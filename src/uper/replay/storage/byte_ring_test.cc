#include "uper/replay/storage/byte_ring.h"

#include <gtest/gtest.h>

#include <vector>

#include "uper/base/error.h"
#include "uper/replay/storage/whole_observations.h"

namespace uper {
namespace {

struct Row {
  std::uint64_t a = 0;
  float b = 0;
};

TEST(ByteRing, KeepsTheNewestCapacityRecords) {
  TypedRing<Row> rows(5);
  for (std::uint64_t id = 0; id < 23; ++id) {
    rows.Put(id, {.a = id * id, .b = static_cast<float>(id)});
    for (std::uint64_t live = id < 4 ? 0 : id - 4; live <= id; ++live) {
      EXPECT_EQ(rows.Get(live).a, live * live);
      EXPECT_EQ(rows.Get(live).b, static_cast<float>(live));
    }
  }
}

TEST(ByteRing, RangesOfIdsCopyOutAndInAcrossTheSeam) {
  TypedRing<Row> rows(5);
  for (std::uint64_t id = 0; id < 13; ++id) rows.Put(id, {.a = id, .b = 0});
  std::vector<Row> segment(4);
  rows.CopyOut(9, segment);
  TypedRing<Row> copy(5);
  copy.CopyIn(9, segment);
  for (std::uint64_t id = 9; id < 13; ++id) EXPECT_EQ(copy.Get(id).a, id);
}

TEST(ByteRing, RefusesWrongSizes) {
  ByteRing storage(3, 8);
  const std::vector<std::byte> bytes(32);
  EXPECT_THROW(storage.Put(0, std::span(bytes).first(7)), Error);
  EXPECT_THROW(storage.CopyIn(0, bytes), Error) << "four records into three slots";
  EXPECT_THROW(storage.CopyIn(0, std::span(bytes).first(9)), Error);
  EXPECT_THROW(ByteRing(0, 8), Error);
  EXPECT_THROW(ByteRing(8, 0), Error);
}

TEST(WholeObservations, GathersBothObservations) {
  WholeObservations store(3, 2 * sizeof(float));
  for (std::uint64_t id = 0; id < 10; ++id) {
    const std::vector<float> s_tm1 = {static_cast<float>(id), -1};
    const std::vector<float> s_t = {static_cast<float>(id) + 1, -2};
    store.Put(id, std::as_bytes(std::span(s_tm1)), std::as_bytes(std::span(s_t)));
    std::vector<float> first(2);
    std::vector<float> second(2);
    store.Gather(id, std::as_writable_bytes(std::span(first)),
                 std::as_writable_bytes(std::span(second)));
    EXPECT_EQ(first, s_tm1);
    EXPECT_EQ(second, s_t);
  }
  EXPECT_THROW(store.Put(10, std::vector<std::byte>(8), std::vector<std::byte>(7)), Error);
  EXPECT_THROW(store.SetState(store.GetState(8, 10), 7, 10), Error);
}

}  // namespace
}  // namespace uper
