#include "uper/nn/cuda/conv/conv_gemm.h"

#include <cmath>
#include <string>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper {
namespace {

// A convolution, or (kLength) the gradient by its input: the windows of that begin at their last
// tap.
struct PictureCase {
  int height, width, channels;  // of A
  int taps, stride;
  int columns;
  int pictures;
  Along b_along = Along::kSide;
  ProductFinish finish = ProductFinish::kStore;
  int products = 1;
  bool narrow = false, by_channels = false;
};

int At(const Affine& offset, int row, int column) {
  return offset.first + row * offset.row + column * offset.column;
}

// Results lie in a picture with a border of one: what is beside them must stay.
PictureCall CallOf(const PictureCase& c) {
  PictureCall call{.count = c.products,
                   .pictures = c.pictures,
                   .pixels = c.height * c.width,
                   .channels = c.channels,
                   .columns = c.columns,
                   .narrow = c.narrow,
                   .by_channels = c.by_channels,
                   .b_along = c.b_along,
                   .finish = c.finish};
  const bool back = c.b_along == Along::kLength;
  for (int i = 0; i < c.products; ++i) {
    PictureProduct& p = call.products[i];
    p.tap_rows = c.taps - i % 2;  // products of a call may differ
    p.tap_columns = c.taps - (back ? i % 2 : 0);
    p.height = (c.height - c.taps) / c.stride + 1 - i / 2;
    p.width = (c.width - c.taps) / c.stride + 1;
    p.windows = {.row = c.stride * c.width, .column = c.stride};
    p.taps = {.row = c.width, .column = 1};
    if (back) {
      p.windows.first = (c.taps - 1) * c.width + c.taps - 1;
      p.taps = {.row = -c.width, .column = -1};
    }
    const int tap = c.channels * c.columns;
    p.b_taps = {.first = 0, .row = c.taps * tap, .column = tap};
    p.mask_at = {.first = 4, .row = p.width * c.columns, .column = c.columns};
    p.c_at = {
        .first = (p.width + 3) * c.columns, .row = (p.width + 2) * c.columns, .column = c.columns};
  }
  const PictureProduct& largest = call.products[0];
  call.mask_picture = largest.height * largest.width * c.columns;
  call.c_picture = (largest.height + 2) * (largest.width + 2) * c.columns;
  return call;
}

struct Operands {
  std::vector<float> a, b, bias, mask;
};

double Expected(const PictureCall& call, const PictureProduct& p, const Operands& from, int picture,
                int y, int x, int n, double& size) {
  double sum = 0;
  for (int i = 0; i < p.tap_rows; ++i) {
    for (int j = 0; j < p.tap_columns; ++j) {
      const int pixel = At(p.windows, y, x) + At(p.taps, i, j);
      for (int c = 0; c < call.channels; ++c) {
        const int b = call.b_along == Along::kSide ? c * call.columns + n : n * call.channels + c;
        const double term = double{from.a[(picture * call.pixels + pixel) * call.channels + c]} *
                            double{from.b[At(p.b_taps, i, j) + b]};
        sum += term;
        size += std::abs(term);
      }
    }
  }
  if (call.finish == ProductFinish::kBiasRelu) return std::max(0.0, sum + double{from.bias[n]});
  if (call.finish == ProductFinish::kMask) {
    return from.mask[picture * call.mask_picture + At(p.mask_at, y, x) + n] > 0 ? sum : 0;
  }
  return sum;
}

// Runs a case and compares it with plain loops. Returns the results.
std::vector<float> Check(const PictureCase& c) {
  SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << "x" << c.channels << " taps "
                                  << c.taps << " stride " << c.stride << " columns " << c.columns
                                  << " pictures " << c.pictures << " finish " << int(c.finish));
  PictureCall call = CallOf(c);
  EXPECT_TRUE(SuitsPictures(call));
  std::vector<Operands> operands;
  std::vector<DeviceBuffer<float>> memory, results;
  for (int i = 0; i < c.products; ++i) {
    const std::string name = std::to_string(i);
    PictureProduct& p = call.products[i];
    operands.push_back(
        {.a = RandomFloats(std::size_t{1} * c.pictures * call.pixels * c.channels, "a" + name),
         .b = RandomFloats(std::size_t{1} * c.taps * c.taps * c.channels * c.columns, "b" + name),
         .bias = RandomFloats(c.columns, "bias" + name),
         .mask = RandomFloats(std::size_t{1} * c.pictures * call.mask_picture + 4, "m" + name)});
    p.a = memory.emplace_back(OnGpu(operands[i].a)).data();
    p.b = memory.emplace_back(OnGpu(operands[i].b)).data();
    p.bias = memory.emplace_back(OnGpu(operands[i].bias)).data();
    p.mask = memory.emplace_back(OnGpu(operands[i].mask)).data();
    p.c = results.emplace_back(Poisoned(std::size_t{1} * c.pictures * call.c_picture)).data();
  }
  LaunchPictures(call, nullptr);
  std::vector<float> all;
  for (int i = 0; i < c.products; ++i) {
    const PictureProduct& p = call.products[i];
    std::vector<float> found = FromGpu(results[i]);
    for (int picture = 0; picture < c.pictures; ++picture) {
      for (int m = 0; m < p.height * p.width; ++m) {
        for (int n = 0; n < c.columns; ++n) {
          const int y = m / p.width, x = m % p.width;
          double size = 0;
          const double expected = Expected(call, p, operands[i], picture, y, x, n, size);
          float& value = found[picture * call.c_picture + At(p.c_at, y, x) + n];
          EXPECT_NEAR(value, expected, std::ldexp(1.0, -20) * size) << m << " " << n;
          if (testing::Test::HasFailure()) return {};  // one is enough
          all.push_back(value);
          value = std::nanf("");
        }
      }
    }
    for (const float value : found) EXPECT_TRUE(std::isnan(value)) << "beside the results";
  }
  return all;
}

class PictureProductTest : public GpuTest {};

TEST_F(PictureProductTest, LayersOfTheAtariNetwork) {
  constexpr auto kRelu = ProductFinish::kBiasRelu;
  constexpr auto kMask = ProductFinish::kMask;
  for (const bool narrow : {false, true}) {
    Check({20, 20, 32, 4, 2, 64, 5, Along::kSide, kRelu, 2, narrow});
    Check({9, 9, 64, 3, 1, 64, 5, Along::kSide, kRelu, 2, narrow});
    Check({11, 11, 64, 3, 1, 64, 3, Along::kLength, kMask, 1, narrow});
    Check({11, 11, 64, 2, 1, 32, 3, Along::kLength, kMask, 4, narrow});
  }
  Check({20, 20, 32, 4, 2, 64, 5, Along::kSide, kRelu, 2, true, true});
  Check({9, 9, 64, 3, 1, 64, 5, Along::kSide, kRelu, 2, true, true});
}

TEST_F(PictureProductTest, OddSizes) {
  for (const Along along : {Along::kSide, Along::kLength}) {
    for (const auto finish :
         {ProductFinish::kStore, ProductFinish::kBiasRelu, ProductFinish::kMask}) {
      Check({1, 1, 8, 1, 1, 16, 1, along, finish, 1, true});
      Check({3, 5, 24, 2, 1, 48, 2, along, finish, 2, true});
      Check({13, 8, 8, 5, 3, 96, 3, along, finish});
      Check({8, 13, 16, 1, 1, 32, 70, along, finish});  // as many positions as there may be
    }
  }
  // Channels for some of the warps, for all of them, and for some more than for others.
  for (const int channels : {8, 24, 32, 72}) {
    Check({7, 6, channels, 3, 1, 48, 3, Along::kSide, ProductFinish::kStore, 2, true, true});
  }
}

TEST_F(PictureProductTest, SameBitsForAnyNumberOfPictures) {
  for (const Along along : {Along::kSide, Along::kLength}) {
    const std::vector<float> many = Check({9, 9, 64, 3, 1, 64, 70, along});
    const std::vector<float> few = Check({9, 9, 64, 3, 1, 64, 2, along});
    ASSERT_FALSE(few.empty());
    ASSERT_GT(many.size(), few.size());
    EXPECT_TRUE(SameBits(few, std::span(many).first(few.size())));
  }
}

TEST(PictureProduct, KnowsWhatItCannotDo) {
  const auto suits = [](PictureCase c, bool narrow) {
    c.narrow = narrow;
    return SuitsPictures(CallOf(c));
  };
  EXPECT_TRUE(suits({20, 20, 32, 4, 2, 64, 1}, false));
  EXPECT_FALSE(suits({20, 20, 28, 4, 2, 64, 1}, false));  // channels in eights
  EXPECT_FALSE(suits({20, 20, 32, 4, 2, 48, 1}, false));  // columns by what a block has
  EXPECT_TRUE(suits({20, 20, 32, 4, 2, 48, 1}, true));
  EXPECT_FALSE(suits({20, 20, 32, 4, 2, 40, 1}, true));
  EXPECT_FALSE(suits({20, 20, 32, 4, 1, 64, 1}, false));   // 289 positions
  EXPECT_FALSE(suits({21, 21, 128, 3, 3, 64, 1}, false));  // a picture of 233 KB
  EXPECT_FALSE(suits({1, 1, 1024, 1, 1, 16, 1}, true));    // more channels than it can divide by
  PictureCase by_channels{20, 20, 32, 4, 2, 64, 1};
  by_channels.by_channels = true;
  EXPECT_TRUE(suits(by_channels, true));
  EXPECT_FALSE(suits(by_channels, false));
  by_channels.b_along = Along::kLength;
  EXPECT_FALSE(suits(by_channels, true));
}

}  // namespace
}  // namespace uper
