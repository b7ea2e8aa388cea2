#include "uper/nn/network_spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "uper/base/error_for_tests.h"

namespace uper {
namespace {

std::string MessageOf(const std::function<void(NetworkSpec&)>& change) {
  NetworkSpec spec = NatureNetwork({.actions = 6});
  change(spec);
  return Refusal([&] { spec.Validate(); });
}

TEST(NetworkSpecTest, PresetsAreValid) {
  EXPECT_NO_THROW(NatureNetwork({.actions = 18, .members = 10, .outputs = 201}).Validate());
  EXPECT_NO_THROW(MinatarNetwork(10, {.actions = 6}).Validate());
  EXPECT_NO_THROW(MlpNetwork(1, {1}, {}).Validate());
}

TEST(NetworkSpecTest, SizesOfTheNatureNetwork) {
  const NetworkSpec spec = NatureNetwork({.actions = 6, .members = 10, .outputs = 201});
  EXPECT_EQ(spec.hidden_total(), 512);
  EXPECT_EQ(spec.member_outputs(), 2010);
  EXPECT_EQ(spec.observation_size(), 84 * 84 * 4);
}

TEST(NetworkSpecTest, SeparateHiddenLayersMultiply) {
  NetworkSpec spec = MinatarNetwork(4, {.actions = 6, .members = 10, .outputs = 51});
  spec.separate_hidden = true;
  EXPECT_EQ(spec.hidden_total(), 1280);
}

TEST(NetworkSpecTest, MlpTakesItsHiddenLayerFromTheEnd) {
  const NetworkSpec spec = MlpNetwork(5, {20, 30, 40}, {.actions = 2});
  EXPECT_EQ(spec.dense, (std::vector<int>{20, 30}));
  EXPECT_EQ(spec.hidden_units, 40);
  EXPECT_EQ(spec.observation_size(), 5);
}

TEST(NetworkSpecTest, MessagesNameTheField) {
  const auto contains = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(MessageOf([](NetworkSpec&) {}), "accepted");
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.actions = 0; }), "actions"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.members = -1; }), "members"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.outputs = 0; }), "outputs"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.hidden_units = 0; }), "hidden_units"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.dense = {3, 0}; }), "dense layer 2"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.input.width = 0; }), "input.width"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.input.scale = 0; }), "input.scale"));
  EXPECT_TRUE(
      contains(MessageOf([](NetworkSpec& s) { s.convolutions[1].stride = 0; }), "convolution 2"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.convolutions[2].kernel = 10; }),
                       "convolution 3: kernel 10 does not fit its input of 9 x 9"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.outputs = 2'000'000'000; }), "too large"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) { s.dense = {1'000'000}; }),
                       "the number of parameters is too large"));
  EXPECT_TRUE(contains(MessageOf([](NetworkSpec& s) {
                         s.hidden_units = s.members = 100'000;
                         s.separate_hidden = true;
                       }),
                       "the hidden layer is too large"));
}

}  // namespace
}  // namespace uper
