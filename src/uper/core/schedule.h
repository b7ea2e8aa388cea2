#pragma once

namespace uper {

// Equals `from` until `start`, then changes linearly, and equals `to` from `end` on. The caller
// chooses the unit of time (frames, transitions). With start == end it is a step at that point.
struct LinearSchedule {
  double from = 0;
  double to = 0;
  double start = 0;
  double end = 0;

  double At(double t) const;
};

// initial * 2^(-t / half_life): the learning rate of the paper's bandit.
struct HalvingSchedule {
  double initial = 0;
  double half_life = 1;

  double At(double t) const;
};

}  // namespace uper
