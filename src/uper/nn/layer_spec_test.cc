#include "uper/nn/layer_spec.h"

#include <gtest/gtest.h>

namespace uper {
namespace {

std::vector<int> Numbers(const ImageShape& shape) {
  return {shape.height, shape.width, shape.channels};
}

// MinAtar with one dense layer by hand: 10 x 10 x 4 -> 8 x 8 x 16 (3 x 3) -> 20 -> 3 x 30 -> head.
NetworkSpec SmallNetwork() {
  NetworkSpec spec = MinatarNetwork(4, {.actions = 6, .members = 3, .outputs = 5});
  spec.dense = {20};
  spec.hidden_units = 30;
  spec.separate_hidden = true;
  return spec;
}

TEST(LayerSpecTest, KindsNamesAndShapes) {
  const std::vector<LayerSpec> layers = MakeLayers(SmallNetwork());
  ASSERT_EQ(layers.size(), 4U);
  const LayerKind kinds[] = {LayerKind::kConvolution, LayerKind::kDense, LayerKind::kHidden,
                             LayerKind::kHead};
  const char* names[] = {"conv1", "dense1", "hidden", "head"};
  const std::vector<int> ins[] = {{10, 10, 4}, {1, 1, 1024}, {1, 1, 20}, {1, 1, 90}};
  const std::vector<int> outs[] = {{8, 8, 16}, {1, 1, 20}, {1, 1, 90}, {1, 1, 90}};
  const int members[] = {1, 1, 3, 3};
  const int fan_ins[] = {36, 1024, 20, 30};
  const double multiply_adds[] = {64 * 36 * 16.0, 1024 * 20.0, 20 * 90.0, 30 * 90.0};
  for (int i = 0; i < 4; ++i) {
    const LayerSpec& layer = layers[i];
    EXPECT_EQ(layer.kind, kinds[i]);
    EXPECT_EQ(layer.name, names[i]);
    EXPECT_EQ(Numbers(layer.in), ins[i]);
    EXPECT_EQ(Numbers(layer.out), outs[i]);
    EXPECT_EQ(layer.members, members[i]);
    EXPECT_EQ(layer.weights.fan_in, fan_ins[i]);
    EXPECT_EQ(layer.bias.fan_in, fan_ins[i]);
    EXPECT_EQ(layer.multiply_adds(), multiply_adds[i]);
  }
  EXPECT_EQ(layers[0].convolution.kernel, 3);
}

TEST(LayerSpecTest, ShapesOfTheNatureNetwork) {
  const std::vector<LayerSpec> layers = MakeLayers(NatureNetwork({.actions = 6}));
  const std::vector<int> ins[] = {{84, 84, 4}, {20, 20, 32}, {9, 9, 64}, {1, 1, 3136}, {1, 1, 512}};
  const std::vector<int> outs[] = {{20, 20, 32}, {9, 9, 64}, {7, 7, 64}, {1, 1, 512}, {1, 1, 6}};
  ASSERT_EQ(layers.size(), std::size(ins));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    EXPECT_EQ(Numbers(layers[i].in), ins[i]) << layers[i].name;
    EXPECT_EQ(Numbers(layers[i].out), outs[i]) << layers[i].name;
  }
}

TEST(LayerSpecTest, TensorsOfALayerAreNamedByItAndFollowEachOther) {
  std::size_t next = 0;
  for (const LayerSpec& layer : MakeLayers(SmallNetwork())) {
    EXPECT_EQ(layer.weights.name, layer.name + "/w");
    EXPECT_EQ(layer.bias.name, layer.name + "/b");
    EXPECT_EQ(layer.weights.offset, next);
    EXPECT_EQ(layer.bias.offset, next + layer.weights.size());
    next = layer.bias.offset + layer.bias.size();
  }
}

}  // namespace
}  // namespace uper
