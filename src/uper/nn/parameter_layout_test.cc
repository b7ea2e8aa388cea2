#include "uper/nn/parameter_layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "uper/base/error.h"

namespace uper {
namespace {

TEST(ParameterLayoutTest, CountsAgreeWithThePublishedNetwork) {
  const ParameterLayout layout(NatureNetwork({.actions = 6, .members = 10, .outputs = 201}));
  const auto layer = [&](const std::string& name) {
    return layout.Find(name + "/w").size() + layout.Find(name + "/b").size();
  };
  EXPECT_EQ(layer("conv1"), 8224U);
  EXPECT_EQ(layer("conv2"), 32832U);
  EXPECT_EQ(layer("conv3"), 36928U);
  EXPECT_EQ(layer("hidden"), 1606144U);
  EXPECT_EQ(layer("head"), 513U * 6 * 10 * 201);
  EXPECT_EQ(layout.size(), 1684128U + 513U * 6 * 10 * 201);
}

TEST(ParameterLayoutTest, OtherShapesOfTheHead) {
  NetworkSpec spec = NatureNetwork({.actions = 4});
  spec.shared_output_bias = true;
  EXPECT_EQ(ParameterLayout(spec).size(), 1684128U + 512 * 4 + 1);
  EXPECT_EQ(ParameterLayout(spec).Find("head/b").shape, std::vector<int>{1});

  spec = MlpNetwork(3, {5}, {.actions = 2, .members = 4, .outputs = 7});
  spec.separate_hidden = true;
  const ParameterLayout separate(spec);
  EXPECT_EQ(separate.Find("hidden/w").shape, (std::vector<int>{3, 4, 5}));
  EXPECT_EQ(separate.Find("hidden/b").shape, (std::vector<int>{4, 5}));
  EXPECT_EQ(separate.Find("head/w").shape, (std::vector<int>{2, 4, 5, 7}));
  EXPECT_EQ(separate.Find("head/b").shape, (std::vector<int>{2, 4, 7}));
}

TEST(ParameterLayoutTest, ViewsFollowEachOtherWithoutGaps) {
  NetworkSpec spec = MinatarNetwork(7, {.actions = 6, .members = 3, .outputs = 5});
  spec.dense = {33, 21};
  const ParameterLayout layout(spec);
  std::size_t next = 0;
  std::vector<std::string> names;
  for (const ParameterView& view : layout.views()) {
    EXPECT_EQ(view.offset, next);
    next += view.size();
    names.push_back(view.name);
  }
  EXPECT_EQ(next, layout.size());
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1/w", "conv1/b", "dense1/w", "dense1/b", "dense2/w",
                                      "dense2/b", "hidden/w", "hidden/b", "head/w", "head/b"}));
  EXPECT_EQ(layout.Find("conv1/w").shape, (std::vector<int>{3, 3, 7, 16}));
  EXPECT_EQ(layout.Find("conv1/b").fan_in, 63);
  EXPECT_EQ(layout.Find("dense1/w").shape, (std::vector<int>{1024, 33}));
  EXPECT_EQ(layout.Find("head/b").fan_in, 128);
  EXPECT_THROW(layout.Find("conv2/w"), Error);
}

}  // namespace
}  // namespace uper
