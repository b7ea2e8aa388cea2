#include "uper/cli/bench/machine_limits.h"

#include <algorithm>
#include <vector>

#include "uper/cli/bench/bench_timing.h"
#include "uper/nn/cpu/kernels/gemm.h"
#include "uper/nn/float_buffer.h"

namespace uper::cli {
namespace {

constexpr int kRepeats = 9;
constexpr int kSide = 192;          // three matrices of 144 KiB
constexpr int kProducts = 200;      // per thread and measurement
constexpr int kEntries = 32 << 20;  // entries of each of three arrays: 128 MiB
constexpr int kPieces = 256;        // tasks that the arrays are cut into

// Seconds of the fastest of several calls.
template <typename Call>
double LeastSeconds(Call&& call) {
  double least = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const double seconds = SecondsSince(start);
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

struct Matrices {
  Matrices() : a(kSide * kSide), b(kSide * kSide), c(kSide * kSide) {
    std::fill_n(a.data(), a.size(), 0.5F);
    std::fill_n(b.data(), b.size(), 0.25F);
  }
  void Multiply() {
    cpu::Gemm({.rows = kSide,
               .columns = kSide,
               .a = a.data(),
               .a_rows = {.stride = kSide},
               .b = b.data(),
               .b_step = kSide,
               .length = kSide,
               .c = c.data(),
               .c_rows = {.stride = kSide}});
  }

  FloatBuffer a, b, c;
};

}  // namespace

double MeasureProductRate(ThreadPool& pool) {
  std::vector<Matrices> matrices(pool.threads());
  const double seconds = LeastSeconds([&] {
    pool.ParallelTasks(pool.threads(), [&](int task) {
      for (int i = 0; i < kProducts; ++i) matrices[task].Multiply();
    });
  });
  return 2.0 * kSide * kSide * kSide * kProducts * pool.threads() / seconds;
}

double MeasureMemoryRate(ThreadPool& pool) {
  std::vector<float> a(kEntries), b(kEntries, 1.0F), c(kEntries, 2.0F);
  const double seconds = LeastSeconds([&] {
    pool.ParallelTasks(kPieces, [&](int piece) {
      constexpr std::size_t kPiece = kEntries / kPieces;
      float* to = &a[piece * kPiece];
      const float* from = &b[piece * kPiece];
      const float* times = &c[piece * kPiece];
      for (std::size_t i = 0; i < kPiece; ++i) to[i] = from[i] + 3.0F * times[i];
    });
  });
  return 3.0 * sizeof(float) * kEntries / seconds;
}

}  // namespace uper::cli
