#include "experiments/bias/closed_form.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace uper::experiments::bias {
namespace {

// A discrete stand-in for a density: sum weight * f(at) is the expectation of f.
struct Node {
  double at = 0;
  double weight = 0;
};

// Gauss-Legendre nodes and weights on [0, 1]: the roots of P_n by Newton's method.
std::vector<Node> GaussLegendre(int n) {
  std::vector<Node> nodes(n);
  for (int i = 0; i < n; ++i) {
    double x = std::cos(std::numbers::pi * (i + 0.75) / (n + 0.5));
    double slope = 0;
    for (int iteration = 0; iteration < 100; ++iteration) {
      double previous = 1;
      double value = x;  // P_1
      for (int k = 2; k <= n; ++k) {
        const double next = ((2 * k - 1) * x * value - (k - 1) * previous) / k;
        previous = value;
        value = next;
      }
      slope = n * (x * value - previous) / (x * x - 1);
      const double step = value / slope;
      x -= step;
      if (std::abs(step) < 1e-15) break;
    }
    nodes[i] = {.at = 0.5 * (1 - x), .weight = 1 / ((1 - x * x) * slope * slope)};
  }
  return nodes;
}

// Nodes for a density. The substitution at = top t^4 crowds them near 0, where y ln y and E/U at
// C = 0 are not smooth. The half-normal is cut at 9 standard deviations (mass 2e-19).
std::vector<Node> DensityNodes(const Density& density, int n) {
  const bool uniform = density.family == Density::Family::kUniform;
  const double top = uniform ? density.scale : 9 * density.scale;
  std::vector<Node> nodes = GaussLegendre(n);
  for (Node& node : nodes) {
    const double t = node.at;
    node.at = top * t * t * t * t;
    const double z = node.at / density.scale;
    const double pdf =
        uniform ? 1 / density.scale
                : std::sqrt(2 / std::numbers::pi) / density.scale * std::exp(-0.5 * z * z);
    node.weight *= pdf * 4 * top * t * t * t;
  }
  return nodes;
}

double YLogYPrimitive(double y) { return y == 0 ? 0 : y * y * (0.5 * std::log(y) - 0.25); }

}  // namespace

double VanillaUniformEntropy(double b, double bias, double entries) {
  const double mean = bias + 0.5 * b;
  const double mean_y_log_y = (YLogYPrimitive(bias + b) - YLogYPrimitive(bias)) / b;
  return std::log(entries) + std::log(mean) - mean_y_log_y / mean;
}

BiasPopulation IntegrateBias(const BiasPanel& panel, double bias, double entries) {
  constexpr int kNodes = 80;
  const std::vector<Node> etas = DensityNodes(panel.eta, kNodes);
  const std::vector<Node> betas = DensityNodes(panel.beta, kNodes);
  PerForm mean{};      // E[p]
  PerForm mean_log{};  // E[p ln p]
  PerForm square{};    // E[p^2]
  PerForm product{};   // E[p eta]
  double eta_mean = 0;
  double eta_square = 0;
  for (const Node& eta : etas) {
    eta_mean += eta.weight * eta.at;
    eta_square += eta.weight * eta.at * eta.at;
    for (const Node& beta : betas) {
      const PerForm p = BiasPriorities(eta.at + bias, beta.at);
      const double weight = eta.weight * beta.weight;
      for (std::size_t form = 0; form < kBiasForms; ++form) {
        mean[form] += weight * p[form];
        mean_log[form] += weight * p[form] * std::log(p[form]);
        square[form] += weight * p[form] * p[form];
        product[form] += weight * p[form] * eta.at;
      }
    }
  }
  BiasPopulation result;
  for (std::size_t form = 0; form < kBiasForms; ++form) {
    result.entropy[form] = std::log(entries) + std::log(mean[form]) - mean_log[form] / mean[form];
    const double error = square[form] / (mean[form] * mean[form]) -
                         2 * product[form] / (mean[form] * eta_mean) +
                         eta_square / (eta_mean * eta_mean);
    result.error_mean[form] = error / (entries * entries);
  }
  return result;
}

BiasPopulation LargeBias(const BiasPanel& panel, double bias, double entries) {
  constexpr PerForm kEtaShare = {1, 0, 1, 2};  // x = kEtaShare * eta - kBetaShare * beta
  constexpr PerForm kBetaShare = {0, 1, 1, 1};
  const double eta_variance = panel.eta.Variance();
  const double beta_variance = panel.beta.Variance();
  const double m = panel.eta.Mean();
  BiasPopulation result;
  for (std::size_t form = 0; form < kBiasForms; ++form) {
    const double variance = kEtaShare[form] * kEtaShare[form] * eta_variance +
                            kBetaShare[form] * kBetaShare[form] * beta_variance;
    const double covariance = kEtaShare[form] * eta_variance;
    result.entropy[form] = std::log(entries) - variance / (2 * bias * bias);
    result.error_mean[form] =
        (eta_variance / (m * m) - 2 * covariance / (bias * m) + variance / (bias * bias)) /
        (entries * entries);
  }
  return result;
}

}  // namespace uper::experiments::bias
