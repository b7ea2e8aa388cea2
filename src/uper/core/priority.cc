#include "uper/core/priority.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "uper/base/check.h"
#include "uper/base/markdown.h"

namespace uper {
namespace {

struct RegisteredRule {
  std::string name;
  std::string formula;
  PriorityRuleInfo info;  // with views of the texts above
};

// Grows only when a rule is registered. The header allows that only before the first use of any
// rule.
struct Rules {
  std::deque<RegisteredRule> registered;  // a deque: the texts must not move
  std::vector<PriorityRule> all;
};

Rules& TheRules() {
  static Rules rules = [] {
    Rules built_in;
    for (const PriorityRuleInfo& info : kPriorityRules) built_in.all.push_back(info.rule);
    return built_in;
  }();
  return rules;
}

// nullptr for a value that is not a registered rule.
const PriorityRuleInfo* FindRegistered(PriorityRule rule) {
  const auto& registered = TheRules().registered;
  const std::size_t index = static_cast<std::size_t>(rule) - std::size(kPriorityRules);
  return index < registered.size() ? &registered[index].info : nullptr;
}

bool IsRuleName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

std::string NeedsText(const PriorityNeeds& needs) {
  std::string text;
  const auto add = [&](bool needed, const char* what) {
    if (needed) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  add(needs.td_error, "TD error");
  add(needs.uncertainty, "uncertainty");
  add(needs.visits, "visits");
  add(needs.truth, "truth");
  return text;
}

}  // namespace

const PriorityRuleInfo& InfoOf(PriorityRule rule) {
  if (IsBuiltIn(rule)) return kPriorityRules[static_cast<std::size_t>(rule)];
  const PriorityRuleInfo* const info = FindRegistered(rule);
  UPER_CHECK(info != nullptr, "not a priority rule");
  return *info;
}

std::string_view PriorityRuleName(PriorityRule rule) { return InfoOf(rule).name; }

std::optional<PriorityRule> PriorityRuleFromName(std::string_view name) {
  for (const PriorityRule rule : AllPriorityRules()) {
    if (PriorityRuleName(rule) == name) return rule;
  }
  return std::nullopt;
}

std::span<const PriorityRule> AllPriorityRules() { return TheRules().all; }

std::string PriorityDocumentation() {
  std::string text = "| rule | priority | reads | for networks |\n|---|---|---|---|\n";
  for (const PriorityRule rule : AllPriorityRules()) {
    const PriorityRuleInfo& info = InfoOf(rule);
    text += "| `" + std::string(info.name) + "` | " + MarkdownCell(info.formula) + " | " +
            NeedsText(info.needs) + " | " + (info.for_networks() ? "yes" : "no") + " |\n";
  }
  return text;
}

PriorityRule RegisterPriorityRule(const PriorityRuleInfo& info) {
  const auto require = [&](bool condition, const char* problem) {
    if (condition) return;
    throw Error(ErrorKind::kUsage,
                "cannot register the priority '" + std::string(info.name) + "': " + problem);
  };
  require(IsRuleName(info.name), "a name is made of lower-case letters, digits and _");
  require(!PriorityRuleFromName(info.name).has_value(), "the name is taken");
  require(info.compute != nullptr, "it has no formula");
  Rules& rules = TheRules();
  const auto rule = static_cast<PriorityRule>(rules.all.size());
  RegisteredRule& added = rules.registered.emplace_back(RegisteredRule{
      .name = std::string(info.name), .formula = std::string(info.formula), .info = info});
  added.info.rule = rule;
  added.info.name = added.name;
  added.info.formula = added.formula;
  rules.all.push_back(rule);
  return rule;
}

namespace priority_internal {

Priority ComputeRegistered(PriorityRule rule, const PriorityInputs& inputs,
                           const PriorityLimits& limits) {
  const PriorityRuleInfo* const info = FindRegistered(rule);
  if (info == nullptr) return {.value = kNan};
  const Priority found = info->compute(inputs, limits);
  Priority priority = FromInput(found.value, limits);
  priority.floored = found.floored;
  priority.capped = priority.capped || found.capped;
  return priority;
}

}  // namespace priority_internal
}  // namespace uper
