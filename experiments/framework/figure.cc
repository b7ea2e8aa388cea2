#include "experiments/framework/figure.h"

namespace uper::experiments {

void RunTasks(const FigureContext& context, std::size_t count,
              const std::function<void(std::size_t)>& task) {
  context.progress.AddTasks(count);
  ParallelFor(context.jobs, count, context.stop, [&](std::size_t index) {
    task(index);
    context.progress.TaskDone();
  });
}

}  // namespace uper::experiments
