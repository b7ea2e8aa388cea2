#pragma once

#include <vector>

namespace uper::atari {

// One dimension of a resize: output i is the weighted sum of `width` inputs from first[i] on, added
// in that order. Inputs that do not count have weight 0.
template <typename Weight>
struct Taps {
  int width = 0;
  std::vector<int> first;       // [output]
  std::vector<Weight> weights;  // [output, width]

  int outputs() const { return static_cast<int>(first.size()); }
};

// Fraction bits of the weights of BilinearTaps().
inline constexpr int kBilinearBits = 22;

// As Pillow's BILINEAR: a triangle of half width max(1, in / out) around the center of the output,
// as integers that add up to about 2^22.
Taps<int> BilinearTaps(int in, int out);

// As OpenCV's INTER_AREA: the share of each input in the output's interval, as float. REQUIRES: out
// <= in.
Taps<float> AreaTaps(int in, int out);

}  // namespace uper::atari
