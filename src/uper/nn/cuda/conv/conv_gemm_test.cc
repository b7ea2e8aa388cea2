#include "uper/nn/cuda/conv/conv_gemm.h"

#include <cmath>
#include <string>

#include "uper/nn/cuda/runtime/cuda_for_tests.h"
#include "uper/nn/learner_data_for_tests.h"

namespace uper::cuda {
namespace {

// A convolution, or (kReduction) its input gradient, whose windows begin at their last tap.
struct ConvGemmCase {
  int height, width, channels;  // of A
  int taps, stride;
  int columns;
  int images;
  Contiguous b_contiguous = Contiguous::kOutput;
  GemmEpilogue epilogue = GemmEpilogue::kStore;
  int gemms = 1;
  bool narrow = false, by_channels = false;
};

int At(const Affine& offset, int row, int column) {
  return offset.first + row * offset.row + column * offset.column;
}

// Results are written to an image with a border of one; the border must not change.
ConvGemmBatch CallOf(const ConvGemmCase& c) {
  ConvGemmBatch call{.count = c.gemms,
                     .images = c.images,
                     .pixels = c.height * c.width,
                     .channels = c.channels,
                     .columns = c.columns,
                     .narrow = c.narrow,
                     .by_channels = c.by_channels,
                     .b_contiguous = c.b_contiguous,
                     .epilogue = c.epilogue};
  const bool back = c.b_contiguous == Contiguous::kReduction;
  for (int i = 0; i < c.gemms; ++i) {
    ConvGemm& p = call.gemms[i];
    p.tap_rows = c.taps - i % 2;  // GEMMs of a call may differ
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
  const ConvGemm& largest = call.gemms[0];
  call.mask_image = largest.height * largest.width * c.columns;
  call.c_image = (largest.height + 2) * (largest.width + 2) * c.columns;
  return call;
}

struct Operands {
  std::vector<float> a, b, bias, mask;
};

double Expected(const ConvGemmBatch& call, const ConvGemm& p, const Operands& from, int image,
                int y, int x, int n, double& size) {
  double sum = 0;
  for (int i = 0; i < p.tap_rows; ++i) {
    for (int j = 0; j < p.tap_columns; ++j) {
      const int pixel = At(p.windows, y, x) + At(p.taps, i, j);
      for (int c = 0; c < call.channels; ++c) {
        const int b =
            call.b_contiguous == Contiguous::kOutput ? c * call.columns + n : n * call.channels + c;
        const double term = double{from.a[(image * call.pixels + pixel) * call.channels + c]} *
                            double{from.b[At(p.b_taps, i, j) + b]};
        sum += term;
        size += std::abs(term);
      }
    }
  }
  if (call.epilogue == GemmEpilogue::kBiasRelu) return std::max(0.0, sum + double{from.bias[n]});
  if (call.epilogue == GemmEpilogue::kMask) {
    return from.mask[image * call.mask_image + At(p.mask_at, y, x) + n] > 0 ? sum : 0;
  }
  return sum;
}

// Runs a case and compares it with plain loops. Returns the results.
std::vector<float> Check(const ConvGemmCase& c) {
  SCOPED_TRACE(testing::Message() << c.height << "x" << c.width << "x" << c.channels << " taps "
                                  << c.taps << " stride " << c.stride << " columns " << c.columns
                                  << " images " << c.images << " finish " << int(c.epilogue));
  ConvGemmBatch call = CallOf(c);
  EXPECT_TRUE(SupportsConvGemms(call));
  std::vector<Operands> operands;
  std::vector<DeviceBuffer<float>> memory, results;
  for (int i = 0; i < c.gemms; ++i) {
    const std::string name = std::to_string(i);
    ConvGemm& p = call.gemms[i];
    operands.push_back(
        {.a = RandomFloats(std::size_t{1} * c.images * call.pixels * c.channels, "a" + name),
         .b = RandomFloats(std::size_t{1} * c.taps * c.taps * c.channels * c.columns, "b" + name),
         .bias = RandomFloats(c.columns, "bias" + name),
         .mask = RandomFloats(std::size_t{1} * c.images * call.mask_image + 4, "m" + name)});
    p.a = memory.emplace_back(OnGpu(operands[i].a)).data();
    p.b = memory.emplace_back(OnGpu(operands[i].b)).data();
    p.bias = memory.emplace_back(OnGpu(operands[i].bias)).data();
    p.mask = memory.emplace_back(OnGpu(operands[i].mask)).data();
    p.c = results.emplace_back(Poisoned(std::size_t{1} * c.images * call.c_image)).data();
  }
  LaunchConvGemms(call, nullptr);
  std::vector<float> all;
  for (int i = 0; i < c.gemms; ++i) {
    const ConvGemm& p = call.gemms[i];
    std::vector<float> found = FromGpu(results[i]);
    for (int image = 0; image < c.images; ++image) {
      for (int m = 0; m < p.height * p.width; ++m) {
        for (int n = 0; n < c.columns; ++n) {
          const int y = m / p.width, x = m % p.width;
          double size = 0;
          const double expected = Expected(call, p, operands[i], image, y, x, n, size);
          float& value = found[image * call.c_image + At(p.c_at, y, x) + n];
          EXPECT_NEAR(value, expected, std::ldexp(1.0, -20) * size) << m << " " << n;
          if (testing::Test::HasFailure()) return {};  // one failure is enough
          all.push_back(value);
          value = std::nanf("");
        }
      }
    }
    for (const float value : found) EXPECT_TRUE(std::isnan(value)) << "beside the results";
  }
  return all;
}

class ConvGemmTest : public GpuTest {};

TEST_F(ConvGemmTest, LayersOfTheAtariNetwork) {
  constexpr auto kRelu = GemmEpilogue::kBiasRelu;
  constexpr auto kMask = GemmEpilogue::kMask;
  for (const bool narrow : {false, true}) {
    Check({20, 20, 32, 4, 2, 64, 5, Contiguous::kOutput, kRelu, 2, narrow});
    Check({9, 9, 64, 3, 1, 64, 5, Contiguous::kOutput, kRelu, 2, narrow});
    Check({11, 11, 64, 3, 1, 64, 3, Contiguous::kReduction, kMask, 1, narrow});
    Check({11, 11, 64, 2, 1, 32, 3, Contiguous::kReduction, kMask, 4, narrow});
  }
  Check({20, 20, 32, 4, 2, 64, 5, Contiguous::kOutput, kRelu, 2, true, true});
  Check({9, 9, 64, 3, 1, 64, 5, Contiguous::kOutput, kRelu, 2, true, true});
}

TEST_F(ConvGemmTest, OddSizes) {
  for (const Contiguous along : {Contiguous::kOutput, Contiguous::kReduction}) {
    for (const auto epilogue :
         {GemmEpilogue::kStore, GemmEpilogue::kBiasRelu, GemmEpilogue::kMask}) {
      Check({1, 1, 8, 1, 1, 16, 1, along, epilogue, 1, true});
      Check({3, 5, 24, 2, 1, 48, 2, along, epilogue, 2, true});
      Check({13, 8, 8, 5, 3, 96, 3, along, epilogue});
      Check({8, 13, 16, 1, 1, 32, 70, along, epilogue});  // the maximum number of positions
    }
  }
  // Channels for some of the warps, for all warps, and for some warps more than for others.
  for (const int channels : {8, 24, 32, 72}) {
    Check({7, 6, channels, 3, 1, 48, 3, Contiguous::kOutput, GemmEpilogue::kStore, 2, true, true});
  }
}

TEST_F(ConvGemmTest, SameBitsForAnyNumberOfImages) {
  for (const Contiguous along : {Contiguous::kOutput, Contiguous::kReduction}) {
    const std::vector<float> many = Check({9, 9, 64, 3, 1, 64, 70, along});
    const std::vector<float> few = Check({9, 9, 64, 3, 1, 64, 2, along});
    ASSERT_FALSE(few.empty());
    ASSERT_GT(many.size(), few.size());
    EXPECT_TRUE(SameBits(few, std::span(many).first(few.size())));
  }
}

TEST(ConvGemm, KnowsWhatItCannotDo) {
  const auto is_supported = [](ConvGemmCase c, bool narrow) {
    c.narrow = narrow;
    return SupportsConvGemms(CallOf(c));
  };
  EXPECT_TRUE(is_supported({20, 20, 32, 4, 2, 64, 1}, false));
  EXPECT_FALSE(is_supported({20, 20, 28, 4, 2, 64, 1}, false));  // channels must be a multiple of 8
  EXPECT_FALSE(is_supported({20, 20, 32, 4, 2, 48, 1},
                            false));  // columns must be a multiple of a block's columns
  EXPECT_TRUE(is_supported({20, 20, 32, 4, 2, 48, 1}, true));
  EXPECT_FALSE(is_supported({20, 20, 32, 4, 2, 40, 1}, true));
  EXPECT_FALSE(is_supported({20, 20, 32, 4, 1, 64, 1}, false));   // 289 positions
  EXPECT_FALSE(is_supported({21, 21, 128, 3, 3, 64, 1}, false));  // an image of 233 KB
  EXPECT_FALSE(
      is_supported({1, 1, 1024, 1, 1, 16, 1}, true));  // more channels than FastDivisor supports
  ConvGemmCase by_channels{20, 20, 32, 4, 2, 64, 1};
  by_channels.by_channels = true;
  EXPECT_TRUE(is_supported(by_channels, true));
  EXPECT_FALSE(is_supported(by_channels, false));
  by_channels.b_contiguous = Contiguous::kReduction;
  EXPECT_FALSE(is_supported(by_channels, true));
}

}  // namespace
}  // namespace uper::cuda
