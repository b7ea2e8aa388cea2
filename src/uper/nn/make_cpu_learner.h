#pragma once

#include <memory>

#include "uper/base/threads/thread_pool.h"
#include "uper/nn/learner.h"

namespace uper {

// A learner on the CPU. Results are the same bits for any number of threads. Parameters start as
// zeros: fill State().online, then call CommitState() and CopyTarget(). The pool must outlive the
// learner. Throws Error(kUsage) for a precision other than fp32.
std::unique_ptr<Learner> MakeCpuLearner(const LearnerSpec& spec, ThreadPool& pool);

}  // namespace uper
