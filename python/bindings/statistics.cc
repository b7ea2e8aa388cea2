#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "array_view.h"
#include "bindings.h"
#include "object_lock.h"
#include "uper/core/ensemble_statistics.h"
#include "uper/core/priority.h"

namespace nb = nanobind;

namespace uper::python {
namespace {

constexpr std::size_t kFields = 7;  // of struct Uncertainty

// The arrays of one call. Python has checked shapes and types.
template <typename Real>
struct Call {
  std::span<const Real> online;    // [batch, member, quantile]
  std::span<const Real> target;    // the same, or empty: a scalar target
  std::span<const double> reward;  // [batch]; of a scalar target: the target itself
  std::span<const double> discount;
  EnsembleShape shape;

  std::size_t batch() const { return reward.size(); }
};

template <typename Real>
std::vector<Uncertainty> Decompose(const Call<Real>& call) {
  std::vector<Uncertainty> out(call.batch());
  if (call.target.empty()) {
    DecomposeScalarTargetBatch<Real>(call.online, call.shape, call.reward, out);
  } else {
    DecomposeTargetQuantilesBatch<Real>(call.online, call.target, call.shape, call.reward,
                                        call.discount, out);
  }
  return out;
}

// |mean target - mean online| of a member, averaged over the members.
template <typename Real>
double TdError(const Call<Real>& call, std::size_t sample, std::vector<double>& online_means,
               std::vector<double>& target_means) {
  const std::size_t count = call.shape.members * call.shape.quantiles;
  QuantileMeans<Real>(call.online.subspan(sample * count, count), call.shape, online_means);
  if (!call.target.empty()) {
    QuantileMeans<Real>(call.target.subspan(sample * count, count), call.shape, target_means);
  }
  double sum = 0;
  for (std::size_t k = 0; k < call.shape.members; ++k) {
    const double bootstrap = call.target.empty() ? 0 : call.discount[sample] * target_means[k];
    sum += std::abs(call.reward[sample] + bootstrap - online_means[k]);
  }
  return sum / static_cast<double>(call.shape.members);
}

// The function of a call with arrays of float or double, without the interpreter lock if that pays.
template <typename Real, typename Function>
void WithCall(const nb::object& online, const nb::object& target, const nb::object& reward,
              const nb::object& discount, std::size_t members, std::size_t quantiles,
              const Function& function) {
  const auto batch = nb::cast<std::size_t>(reward.attr("size"));
  const std::size_t bytes = batch * members * quantiles * sizeof(Real);
  const ArrayView online_view(online, bytes, false, "online");
  ArrayView target_view;
  if (!target.is_none()) target_view = ArrayView(target, bytes, false, "target");
  const ArrayView reward_view(reward, batch * sizeof(double), false, "reward");
  const ArrayView discount_view(discount, batch * sizeof(double), false, "discount");
  const Call<Real> call{
      .online = online_view.values<const Real>(),
      .target = target.is_none() ? std::span<const Real>() : target_view.values<const Real>(),
      .reward = reward_view.values<const double>(),
      .discount = discount_view.values<const double>(),
      .shape = {.members = members, .quantiles = quantiles}};
  if (bytes < kBytesWorthReleasing) return function(call);
  const nb::gil_scoped_release release;
  function(call);
}

template <typename Real>
void DecomposeInto(const nb::object& online, const nb::object& target, const nb::object& reward,
                   const nb::object& discount, std::size_t members, std::size_t quantiles,
                   const nb::object& out) {
  const auto batch = nb::cast<std::size_t>(reward.attr("size"));
  const ArrayView view(out, kFields * batch * sizeof(double), true, "out");
  const std::span<double> to = view.values<double>();
  WithCall<Real>(online, target, reward, discount, members, quantiles, [&](const Call<Real>& call) {
    const std::vector<Uncertainty> found = Decompose(call);
    for (std::size_t b = 0; b < found.size(); ++b) {
      const Uncertainty& u = found[b];
      const double row[kFields] = {
          u.mean,  u.epistemic,  u.aleatoric, u.target_distance_sq, u.epistemic_delta,
          u.total, u.total_delta};
      for (std::size_t f = 0; f < kFields; ++f) to[f * batch + b] = row[f];
    }
  });
}

PriorityRule NetworkRule(const std::string& name) {
  const std::optional<PriorityRule> rule = PriorityRuleFromName(name);
  if (rule && InfoOf(*rule).for_networks()) return *rule;
  throw Error(ErrorKind::kUsage, "there is no priority rule '" + name + "' for networks");
}

template <typename Real>
void PrioritiesInto(const nb::object& online, const nb::object& target, const nb::object& reward,
                    const nb::object& discount, std::size_t members, std::size_t quantiles,
                    const std::string& rule_name, const nb::object& td_error, double floor,
                    double cap, const nb::object& out) {
  const auto batch = nb::cast<std::size_t>(reward.attr("size"));
  const ArrayView view(out, batch * sizeof(double), true, "out");
  ArrayView given;
  if (!td_error.is_none()) given = ArrayView(td_error, batch * sizeof(double), false, "td_error");
  const PriorityRule rule = NetworkRule(rule_name);
  const PriorityNeeds needs = InfoOf(rule).needs;
  const PriorityLimits limits{.aleatoric_floor = floor, .cap = cap};
  WithCall<Real>(online, target, reward, discount, members, quantiles, [&](const Call<Real>& call) {
    std::vector<Uncertainty> found(call.batch());
    if (needs.uncertainty) found = Decompose(call);
    std::vector<double> online_means(members), target_means(members);
    for (std::size_t b = 0; b < call.batch(); ++b) {
      PriorityInputs inputs{.uncertainty = found[b]};
      if (!td_error.is_none()) {
        inputs.td_error = given.values<const double>()[b];
      } else if (needs.td_error) {
        inputs.td_error = TdError(call, b, online_means, target_means);
      }
      view.values<double>()[b] = ComputePriority(rule, inputs, limits).value;
    }
  });
}

nb::dict PriorityRules() {
  nb::dict rules;
  for (const PriorityRule rule : AllPriorityRules()) {
    const PriorityRuleInfo& info = InfoOf(rule);
    if (info.for_networks())
      rules[nb::str(info.name.data(), info.name.size())] =
          nb::str(info.formula.data(), info.formula.size());
  }
  return rules;
}

}  // namespace

void BindStatistics(nb::module_& module) {
  module.def("priority_rules", &PriorityRules);
  module.attr("instructions") = RunnableEnsembleKernels<float>().front().instructions;
  module.def("decompose_float32", &DecomposeInto<float>, nb::arg("online"),
             nb::arg("target").none(), nb::arg("reward"), nb::arg("discount"), nb::arg("members"),
             nb::arg("quantiles"), nb::arg("out"));
  module.def("decompose_float64", &DecomposeInto<double>, nb::arg("online"),
             nb::arg("target").none(), nb::arg("reward"), nb::arg("discount"), nb::arg("members"),
             nb::arg("quantiles"), nb::arg("out"));
  module.def("priorities_float32", &PrioritiesInto<float>, nb::arg("online"),
             nb::arg("target").none(), nb::arg("reward"), nb::arg("discount"), nb::arg("members"),
             nb::arg("quantiles"), nb::arg("rule"), nb::arg("td_error").none(), nb::arg("floor"),
             nb::arg("cap"), nb::arg("out"));
  module.def("priorities_float64", &PrioritiesInto<double>, nb::arg("online"),
             nb::arg("target").none(), nb::arg("reward"), nb::arg("discount"), nb::arg("members"),
             nb::arg("quantiles"), nb::arg("rule"), nb::arg("td_error").none(), nb::arg("floor"),
             nb::arg("cap"), nb::arg("out"));
}

}  // namespace uper::python
