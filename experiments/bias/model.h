#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace uper::experiments::bias {

// "Bias as temperature" (paper, SM "Bias as Temperature"): a replay memory of N entries, entry i
// with reducible uncertainty eta_i and irreducible uncertainty beta_i. A systematic error C of the
// epistemic estimate makes E_i = eta_i + C and U_i = eta_i + C + beta_i; the true priority of an
// entry is eta_i.

// One density on [0, infinity): uniform on [0, scale], or the absolute value of N(0, scale^2).
struct Density {
  enum class Family { kUniform, kHalfNormal };

  Family family = Family::kUniform;
  double scale = 1;

  double Mean() const;
  double Variance() const;
  // The argument at which the distribution function equals `probability`, for 0 < probability < 1.
  double Quantile(double probability) const;
  // "uniform" or "half_normal".
  std::string_view FamilyName() const;
};

// One of the eight panels: rho_eta and rho_beta.
struct BiasPanel {
  char letter = 'a';
  Density eta;
  Density beta;
};

// Panels a..h. `normal_scale_3` is the standard deviation that the paper's |N(0,3)| stands for:
// 3, or sqrt(3) where the 3 is read as a variance.
std::array<BiasPanel, 8> BiasPanels(double normal_scale_3 = 3);

// The four forms, p before normalization: E (vanilla), E/U, E^2/U, E^3/U.
inline constexpr std::size_t kBiasForms = 4;
inline constexpr std::array<std::string_view, kBiasForms> kBiasFormNames = {
    "epistemic", "ratio_eu", "ratio_e2u", "ratio_e3u"};
enum BiasForm : std::size_t { kVanilla = 0, kEu = 1, kE2u = 2, kE3u = 3 };

// One value per form.
using PerForm = std::array<double, kBiasForms>;

// All four priorities of one entry with epistemic = eta + C; 0 where epistemic is 0. Equal to
// core's RatioEpistemicPowerTotal with floor 0, without its general power.
inline PerForm BiasPriorities(double epistemic, double beta) {
  if (epistemic == 0) return {};
  const double ratio = epistemic / (epistemic + beta);
  return {epistemic, ratio, ratio * epistemic, ratio * epistemic * epistemic};
}

// The entries of one replay memory.
struct BiasEntries {
  std::vector<double> eta;
  std::vector<double> beta;
};

// N independent entries of a panel. They depend on panel and seed alone. They are drawn by
// inversion from named streams, so that panels of one family differ by their scale alone.
BiasEntries DrawBiasEntries(const BiasPanel& panel, std::size_t entries, std::uint64_t seed);

// Entropy of the priority distribution, H = ln S - sum_i p_i ln p_i / S with S = sum_i p_i, of each
// form at the given bias. REQUIRES: bias >= 0, not all priorities 0.
PerForm PriorityEntropies(const BiasEntries& entries, double bias);

// Mean and standard deviation, over the entries, of the squared difference between an entry's
// probability and the true one, eta_i / sum eta.
struct ErrorMoments {
  double mean = 0;
  double sd = 0;
};
using ErrorsPerForm = std::array<ErrorMoments, kBiasForms>;
ErrorsPerForm PriorityErrors(const BiasEntries& entries, double bias);
// The same of uniform sampling, the limit of every form for large C.
ErrorMoments UniformError(const BiasEntries& entries);

}  // namespace uper::experiments::bias
