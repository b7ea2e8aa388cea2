#include "uper/nn/cpu/kernels/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "uper/nn/cpu/kernels/simd_info.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "uper/base/error.h"
#include "uper/nn/cpu/kernels/simd_info.h"

HWY_BEFORE_NAMESPACE();
namespace uper::cpu {
namespace HWY_NAMESPACE {

const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

}  // namespace HWY_NAMESPACE
}  // namespace uper::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace uper::cpu {

HWY_EXPORT(TargetName);

std::string SimdTargetName() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }

std::vector<std::int64_t> RunnableSimdTargets() {
  std::vector<std::int64_t> targets;
  UseSimdTarget(0);
  std::int64_t left = HWY_TARGETS & hwy::SupportedTargets();
  while (left != 0) {
    const std::int64_t lowest = left & -left;  // Highway numbers better targets lower
    targets.push_back(lowest);
    left &= left - 1;
  }
  return targets;
}

void UseSimdTarget(std::int64_t target) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().DeInit();  // the next kernel call chooses a target again
}

void UseSimdTarget(const std::string& name) {
  std::string names;
  for (const std::int64_t target : RunnableSimdTargets()) {
    if (hwy::TargetName(target) == name) return UseSimdTarget(target);
    names += (names.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw Error(ErrorKind::kUsage, "no instruction set '" + name + "' here; there are " + names);
}

}  // namespace uper::cpu
#endif  // HWY_ONCE
