#include "uper/core/schedule.h"

#include <algorithm>
#include <cmath>

namespace uper {

double LinearSchedule::At(double t) const {
  if (t >= end) return to;
  if (t <= start) return from;
  const double value = from + (to - from) * ((t - start) / (end - start));
  // Without the clamp, rounding could move an exponent or a probability out of its range.
  return std::clamp(value, std::min(from, to), std::max(from, to));
}

double HalvingSchedule::At(double t) const { return initial * std::exp2(-t / half_life); }

}  // namespace uper
