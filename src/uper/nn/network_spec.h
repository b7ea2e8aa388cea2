#pragma once

#include <cstdint>
#include <vector>

namespace uper {

enum class InputType { kUint8, kFloat32 };

// Order of one observation in memory: [height, width, channels] or [channels, height, width] (a
// stack of frames, each stored whole).
enum class InputLayout { kChannelsLast, kPlanes };

// Height, width and channels of an image or a feature map. Networks keep channels last in memory.
struct ImageShape {
  int height = 1;
  int width = 1;
  int channels = 1;

  int size() const { return height * width * channels; }
};

struct InputSpec {
  int height = 1;
  int width = 1;
  int channels = 1;
  InputType type = InputType::kFloat32;
  InputLayout layout = InputLayout::kChannelsLast;
  float scale = 1;  // the network multiplies every entry by it: 1/255 for pixels

  ImageShape shape() const { return {height, width, channels}; }
};

// Convolution with a square kernel and VALID padding, followed by ReLU.
struct ConvolutionSpec {
  int filters = 1;
  int kernel = 1;
  int stride = 1;
};

// The one family of networks of this project, as data:
//
//   observation -> convolutions -> flatten (height, width, channel order) -> dense layers
//               -> hidden layer -> linear head [action, member, output],
//
// with ReLU after every layer except the head. The members of an ensemble are slices of one head
// over the shared hidden layer. With `separate_hidden` each member has its own hidden layer, and
// its slice of the head reads only that one. MakeLayers() (layer_spec.h) lists the layers.
struct NetworkSpec {
  InputSpec input;
  std::vector<ConvolutionSpec> convolutions;
  // Units of the dense layers between the convolutions and the hidden layer.
  std::vector<int> dense;
  int hidden_units = 1;  // per member, if separate
  int actions = 1;
  int members = 1;                  // K
  int outputs = 1;                  // M: 1 for a scalar head, else quantiles or atoms
  bool separate_hidden = false;     // one hidden layer per member
  bool shared_output_bias = false;  // one bias for all outputs (DQN Zoo's double_q and prioritized)

  // Throws Error(kUsage) that names the field when a size is not positive, a kernel does not fit,
  // or the network has more than 2^31 - 1 parameters or activations in one layer.
  void Validate() const;

  // The functions below REQUIRE a valid spec.
  int observation_size() const { return input.shape().size(); }
  int hidden_total() const { return separate_hidden ? members * hidden_units : hidden_units; }
  int member_outputs() const { return members * outputs; }  // per action
};

struct HeadSize {
  int actions = 1;
  int members = 1;
  int outputs = 1;
};

// The network of DQN for Atari: 84 x 84 x 4 pixels as planes, 32@8/4, 64@4/2, 64@3/1, 512.
NetworkSpec NatureNetwork(const HeadSize& head);
// The network of MinAtar: 10 x 10 x channels of 0 and 1, 16@3/1, 128.
NetworkSpec MinatarNetwork(int channels, const HeadSize& head);
// Dense layers only, on a vector of floats; the last entry of `units` is the hidden layer.
NetworkSpec MlpNetwork(int inputs, const std::vector<int>& units, const HeadSize& head);

}  // namespace uper
