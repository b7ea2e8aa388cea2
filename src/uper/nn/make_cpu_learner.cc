#include "uper/nn/make_cpu_learner.h"

#include "uper/nn/cpu/cpu_learner.h"

namespace uper {

std::unique_ptr<Learner> MakeCpuLearner(const LearnerSpec& spec, ThreadPool& pool) {
  return std::make_unique<cpu::CpuLearner>(spec, pool);
}

}  // namespace uper
