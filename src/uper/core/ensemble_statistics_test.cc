#include "uper/core/ensemble_statistics.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "uper/base/error.h"
#include "uper/base/random.h"
#include "uper/core/moments.h"

namespace uper {
namespace {

constexpr double kReward = 0.3;
constexpr double kDiscount = 0.9;
constexpr double kTarget = 1.5;

// All remainders of a division by eight, one and several blocks of eight, the paper's sizes.
std::vector<EnsembleShape> Shapes() {
  std::vector<EnsembleShape> shapes = {{10, 51}, {10, 201}, {64, 3}};
  for (const std::size_t members : {1, 2, 3, 10}) {
    for (std::size_t quantiles = 1; quantiles <= 20; ++quantiles) {
      shapes.push_back({members, quantiles});
    }
  }
  return shapes;
}

template <typename Real>
std::vector<Real> Normals(std::size_t count, const std::string& name, double offset = 0) {
  RandomStream random(1, name);
  std::vector<Real> values(count);
  for (Real& value : values) value = static_cast<Real>(offset + random.Normal());
  return values;
}

template <typename Real>
std::vector<Real> Outputs(EnsembleShape shape, const std::string& name, double offset = 0) {
  return Normals<Real>(shape.members * shape.quantiles, name, offset);
}

using Fields = std::array<double, 7>;
static_assert(sizeof(Fields) == sizeof(Uncertainty));

Fields FieldsOf(const Uncertainty& u) {
  return {u.mean,  u.epistemic,  u.aleatoric, u.target_distance_sq, u.epistemic_delta,
          u.total, u.total_delta};
}

bool SameBits(const Uncertainty& x, const Uncertainty& y) {
  using Bits = std::array<std::uint64_t, std::tuple_size_v<Fields>>;
  return std::bit_cast<Bits>(x) == std::bit_cast<Bits>(y);
}

template <typename Real>
Uncertainty FastQuantiles(std::span<const Real> theta, std::span<const Real> target,
                          EnsembleShape shape) {
  std::vector<double> theta_means(shape.members), target_means(shape.members);
  std::vector<double> columns(shape.quantiles);
  QuantileMeans<Real>(theta, shape, theta_means);
  QuantileMeans<Real>(target, shape, target_means);
  return DecomposeTargetQuantilesSimd<Real>(theta, target, shape, kReward, kDiscount, theta_means,
                                            target_means, columns);
}

template <typename Real>
Uncertainty FastScalar(std::span<const Real> theta, EnsembleShape shape) {
  std::vector<double> columns(shape.quantiles);
  return DecomposeScalarTargetSimd<Real>(theta, shape, kTarget, columns);
}

// Both functions compute the mean and, for every other field, a sum q of at most three means of
// squared distances. At most members * quantiles + 10 roundings of 2^-53 follow one another: their
// sum is e. A distance is made of numbers up to `size`, so it is off by e * size at most. By
// Cauchy-Schwarz that changes q by at most 2 e size sqrt(3 q) + 3 (e size)^2. The squares and their
// sum change it by e q. Both functions are off, so twice that.
void ExpectClose(const Uncertainty& fast, const Uncertainty& reference, EnsembleShape shape,
                 double size) {
  const double roundings = static_cast<double>(shape.members * shape.quantiles + 10);
  const double e = roundings * std::numeric_limits<double>::epsilon() / 2;
  const double off = e * size;
  EXPECT_NEAR(fast.mean, reference.mean, 2 * off);
  const Fields a = FieldsOf(fast), b = FieldsOf(reference);
  for (std::size_t i = 1; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 2 * (2 * off * std::sqrt(3 * b[i]) + 3 * off * off + e * b[i])) << i;
  }
}

template <typename Real>
double LargestSize(const std::vector<Real>& values) {
  double largest = 0;
  for (const Real value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

template <typename Real>
class EnsembleStatisticsTest : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(EnsembleStatisticsTest, Reals);

TYPED_TEST(EnsembleStatisticsTest, AgreeWithTheScalarFunctions) {
  for (const EnsembleShape shape : Shapes()) {
    for (const double offset : {0.0, 1000.0}) {
      SCOPED_TRACE(std::to_string(shape.members) + " x " + std::to_string(shape.quantiles));
      const auto theta = Outputs<TypeParam>(shape, "theta", offset);
      const auto target = Outputs<TypeParam>(shape, "target", -offset);
      const double size = kTarget + LargestSize(theta) + LargestSize(target);
      ExpectClose(FastQuantiles<TypeParam>(theta, target, shape),
                  DecomposeTargetQuantiles<TypeParam>(theta, target, shape, kReward, kDiscount),
                  shape, size);
      ExpectClose(FastScalar<TypeParam>(theta, shape),
                  DecomposeScalarTarget<TypeParam>(theta, shape, kTarget), shape, size);
    }
  }
}

TYPED_TEST(EnsembleStatisticsTest, SumsHaveTheFixedOrder) {
  for (const EnsembleShape shape : Shapes()) {
    const auto values = Outputs<TypeParam>(shape, "values");
    std::vector<double> means(shape.members);
    QuantileMeans<TypeParam>(values, shape, means);
    for (std::size_t k = 0; k < shape.members; ++k) {
      const auto row = values.begin() + k * shape.quantiles;
      const std::vector<double> wide(row, row + shape.quantiles);
      EXPECT_EQ(means[k], LaneSum(wide) / static_cast<double>(shape.quantiles));
    }
  }
}

TYPED_TEST(EnsembleStatisticsTest, SameBitsOnEveryInstructionSet) {
  const auto versions = RunnableEnsembleKernels<TypeParam>();
  EXPECT_EQ(versions.back().instructions, std::string("portable"));
  for (const EnsembleShape shape : Shapes()) {
    const auto theta = Outputs<TypeParam>(shape, "theta", 3);
    const auto target = Outputs<TypeParam>(shape, "target", -2);
    const Uncertainty quantiles = FastQuantiles<TypeParam>(theta, target, shape);
    const Uncertainty scalar = FastScalar<TypeParam>(theta, shape);
    std::vector<double> theta_means(shape.members), target_means(shape.members);
    std::vector<double> columns(shape.quantiles);
    for (const auto& version : versions) {
      SCOPED_TRACE(version.instructions);
      version.quantile_means(theta.data(), shape, theta_means.data());
      version.quantile_means(target.data(), shape, target_means.data());
      const auto decompose = [&](const double* own_means, const double* next_means) {
        return version.decompose_target(theta.data(), target.data(), shape, kReward, kDiscount,
                                        own_means, next_means, columns.data());
      };
      EXPECT_TRUE(SameBits(decompose(theta_means.data(), target_means.data()), quantiles));
      EXPECT_TRUE(SameBits(decompose(nullptr, nullptr), quantiles));
      const Uncertainty u = version.decompose(theta.data(), shape, columns.data());
      EXPECT_TRUE(SameBits(WithTarget(u.mean, u.epistemic, u.aleatoric, kTarget), scalar));
    }
  }
}

// A copy at an odd address, between bytes that make every number NaN.
template <typename Real>
struct OddCopy {
  explicit OddCopy(const std::vector<Real>& values)
      : bytes((values.size() + 16) * sizeof(Real) + 1, 0xFF), size(values.size()) {
    std::memcpy(bytes.data() + kFirst, values.data(), size * sizeof(Real));
  }
  std::span<const Real> view() const {
    return {reinterpret_cast<const Real*>(bytes.data() + kFirst), size};
  }

  static constexpr std::size_t kFirst = 8 * sizeof(Real) + 1;
  std::vector<std::uint8_t> bytes;
  std::size_t size;
};

TYPED_TEST(EnsembleStatisticsTest, AnyAddressAndNeighborsGiveTheSame) {
  for (const EnsembleShape shape : Shapes()) {
    const auto theta = Outputs<TypeParam>(shape, "theta");
    const auto target = Outputs<TypeParam>(shape, "target");
    const OddCopy<TypeParam> odd_theta(theta), odd_target(target);
    EXPECT_TRUE(SameBits(FastQuantiles<TypeParam>(odd_theta.view(), odd_target.view(), shape),
                         FastQuantiles<TypeParam>(theta, target, shape)));
    EXPECT_TRUE(SameBits(FastScalar<TypeParam>(odd_theta.view(), shape),
                         FastScalar<TypeParam>(theta, shape)));
  }
}

// A copy that ends where memory ends.
template <typename Real>
class LastCopy {
 public:
  explicit LastCopy(const std::vector<Real>& values)
      : size_(values.size()),
        pages_((size_ * sizeof(Real) + kPage - 1) / kPage * kPage),
        memory_(static_cast<std::uint8_t*>(mmap(nullptr, pages_ + kPage, PROT_READ | PROT_WRITE,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    mprotect(memory_ + pages_, kPage, PROT_NONE);
    std::memcpy(memory_ + pages_ - size_ * sizeof(Real), values.data(), size_ * sizeof(Real));
  }
  ~LastCopy() { munmap(memory_, pages_ + kPage); }
  LastCopy(const LastCopy&) = delete;
  LastCopy& operator=(const LastCopy&) = delete;

  Real* data() const { return reinterpret_cast<Real*>(memory_ + pages_) - size_; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 16;  // the largest page of any Linux

  std::size_t size_;
  std::size_t pages_;  // in bytes
  std::uint8_t* memory_;
};

// The address sanitizer does not see what a load with a mask reads.
TYPED_TEST(EnsembleStatisticsTest, NothingIsReadBeyondTheEnd) {
  for (const EnsembleShape shape : Shapes()) {
    const LastCopy<TypeParam> theta(Outputs<TypeParam>(shape, "theta"));
    const LastCopy<double> columns(std::vector<double>(shape.quantiles));
    for (const auto& version : RunnableEnsembleKernels<TypeParam>()) {
      const Uncertainty u = version.decompose_target(theta.data(), theta.data(), shape, kReward,
                                                     kDiscount, nullptr, nullptr, columns.data());
      EXPECT_TRUE(std::isfinite(u.total_delta));
      EXPECT_EQ(version.decompose(theta.data(), shape, columns.data()).mean, u.mean);
    }
  }
}

TYPED_TEST(EnsembleStatisticsTest, EqualMembersOrQuantilesHaveNoSpread) {
  const EnsembleShape shape{.members = 10, .quantiles = 51};
  const auto row = Normals<TypeParam>(shape.quantiles, "row");
  std::vector<TypeParam> equal_members, equal_quantiles;
  for (std::size_t i = 0; i < shape.members * shape.quantiles; ++i) {
    equal_members.push_back(row[i % shape.quantiles]);
    equal_quantiles.push_back(row[i / shape.quantiles]);
  }
  const auto scalar = [&](const auto& theta) { return FastScalar<TypeParam>(theta, shape); };
  EXPECT_EQ(scalar(equal_members).epistemic, 0);
  EXPECT_GT(scalar(equal_members).aleatoric, 0);
  EXPECT_EQ(scalar(equal_quantiles).aleatoric, 0);
  EXPECT_GT(scalar(equal_quantiles).epistemic, 0);
  // Targets without spread, and members that differ only by an offset: only the gaps remain.
  const Uncertainty offsets = FastQuantiles<TypeParam>(equal_quantiles, equal_quantiles, shape);
  double gap_squares = 0;
  for (std::size_t k = 0; k < shape.members; ++k) {
    const double gap = kReward + (kDiscount - 1) * double{row[k]};
    gap_squares += gap * gap / 10;
  }
  EXPECT_NEAR(offsets.epistemic_delta, gap_squares, 1e-14);
}

TEST(EnsembleStatisticsOfDoublesTest, CommonOffsetChangesNothing) {
  // Integers, so that adding the offset loses nothing.
  const EnsembleShape shape{.members = 10, .quantiles = 51};
  RandomStream random(1, "offset");
  std::vector<double> theta(shape.members * shape.quantiles), shifted;
  for (double& value : theta) value = static_cast<double>(random.UniformInt(100));
  for (const double value : theta) shifted.push_back(value + std::exp2(50));
  const Uncertainty u = FastScalar<double>(theta, shape);
  const Uncertainty v = FastScalar<double>(shifted, shape);
  EXPECT_EQ(u.epistemic, v.epistemic);
  EXPECT_EQ(u.aleatoric, v.aleatoric);
}

TYPED_TEST(EnsembleStatisticsTest, NotANumberIsNotHidden) {
  const EnsembleShape shape{.members = 3, .quantiles = 11};
  const auto good = Outputs<TypeParam>(shape, "good");
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = std::numeric_limits<TypeParam>::quiet_NaN();
    EXPECT_TRUE(std::isnan(FastScalar<TypeParam>(bad, shape).epistemic_delta));
    EXPECT_TRUE(std::isnan(FastQuantiles<TypeParam>(bad, good, shape).epistemic_delta));
    EXPECT_TRUE(std::isnan(FastQuantiles<TypeParam>(good, bad, shape).epistemic_delta));
  }
}

TYPED_TEST(EnsembleStatisticsTest, BatchesAreTheSamplesOneByOne) {
  for (const EnsembleShape shape : {EnsembleShape{1, 1}, {3, 7}, {10, 51}}) {
    const std::size_t size = shape.members * shape.quantiles;
    const std::size_t samples = 5;
    const auto theta = Normals<TypeParam>(samples * size, "theta");
    const auto target = Normals<TypeParam>(samples * size, "target");
    const auto rewards = Normals<double>(samples, "rewards");
    const std::vector<double> discounts = {0.99, 0, 0.9, 1, 0.5};
    std::vector<Uncertainty> pairs(samples), scalars(samples);
    DecomposeTargetQuantilesBatch<TypeParam>(theta, target, shape, rewards, discounts, pairs);
    DecomposeScalarTargetBatch<TypeParam>(theta, shape, rewards, scalars);
    std::vector<double> own(shape.members), next(shape.members), columns(shape.quantiles);
    for (std::size_t b = 0; b < samples; ++b) {
      const auto theta_b = std::span(theta).subspan(b * size, size);
      const auto target_b = std::span(target).subspan(b * size, size);
      QuantileMeans<TypeParam>(theta_b, shape, own);
      QuantileMeans<TypeParam>(target_b, shape, next);
      EXPECT_TRUE(SameBits(
          pairs[b], DecomposeTargetQuantilesSimd<TypeParam>(theta_b, target_b, shape, rewards[b],
                                                            discounts[b], own, next, columns)));
      EXPECT_TRUE(SameBits(
          scalars[b], DecomposeScalarTargetSimd<TypeParam>(theta_b, shape, rewards[b], columns)));
    }
  }
}

TYPED_TEST(EnsembleStatisticsTest, ShapesAreChecked) {
  const std::vector<TypeParam> theta(6);
  std::vector<double> columns(3), means(2);
  const EnsembleShape shape{.members = 2, .quantiles = 3};
  const auto first = [&](std::size_t count) { return std::span(theta).first(count); };
  const auto scalar = [&](std::size_t count, EnsembleShape of, std::vector<double>& scratch) {
    DecomposeScalarTargetSimd<TypeParam>(first(count), of, 0, scratch);
  };
  EXPECT_NO_THROW(scalar(6, shape, columns));
  EXPECT_THROW(scalar(5, shape, columns), Error);
  EXPECT_THROW(scalar(6, shape, means), Error);
  std::vector<double> none;
  EXPECT_THROW(scalar(0, {2, 0}, none), Error);
  EXPECT_THROW(QuantileMeans<TypeParam>(theta, shape, columns), Error);
  const auto quantiles = [&](std::size_t count, std::vector<double>& own,
                             std::vector<double>& next) {
    DecomposeTargetQuantilesSimd<TypeParam>(theta, first(count), shape, 0, 1, own, next, columns);
  };
  EXPECT_NO_THROW(quantiles(6, means, means));
  EXPECT_THROW(quantiles(3, means, means), Error);
  EXPECT_THROW(quantiles(6, columns, means), Error);
  EXPECT_THROW(quantiles(6, means, columns), Error);
}

TYPED_TEST(EnsembleStatisticsTest, ShapesOfBatchesAreChecked) {
  const std::vector<TypeParam> theta(12);
  const EnsembleShape shape{.members = 2, .quantiles = 3};
  const std::vector<double> two(2), three(3);
  std::vector<Uncertainty> out(2), too_many(3);
  const auto quantiles = [&](std::size_t count, const std::vector<double>& rewards,
                             const std::vector<double>& discounts, std::span<Uncertainty> to) {
    DecomposeTargetQuantilesBatch<TypeParam>(theta, std::span(theta).first(count), shape, rewards,
                                             discounts, to);
  };
  EXPECT_NO_THROW(quantiles(12, two, two, out));
  EXPECT_THROW(quantiles(6, two, two, out), Error);
  EXPECT_THROW(quantiles(12, three, two, out), Error);
  EXPECT_THROW(quantiles(12, two, three, out), Error);
  EXPECT_THROW(quantiles(12, three, three, too_many), Error);
  EXPECT_NO_THROW(DecomposeScalarTargetBatch<TypeParam>(theta, shape, two, out));
  EXPECT_THROW(DecomposeScalarTargetBatch<TypeParam>(theta, shape, three, out), Error);
  EXPECT_THROW(DecomposeScalarTargetBatch<TypeParam>(theta, shape, three, too_many), Error);
  EXPECT_NO_THROW(DecomposeScalarTargetBatch<TypeParam>({}, shape, {}, {}));
}

}  // namespace
}  // namespace uper
