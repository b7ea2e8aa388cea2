#include "uper/nn/cpu/action_groups.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "uper/base/check.h"

namespace uper::cpu {

ActionGroups::ActionGroups(int actions, int lists, int max_batch)
    : actions_(actions),
      max_batch_(max_batch),
      begins_(std::size_t{1} * lists * (actions + 1)),
      samples_(std::size_t{1} * lists * max_batch) {}

void ActionGroups::Build(std::span<const int> chosen, int batch, int lists) {
  UPER_CHECK(batch <= max_batch_ && chosen.size() == std::size_t{1} * batch * lists,
             "one action is needed for each sample and list");
  for (const int action : chosen) {
    UPER_CHECK(action >= 0 && action < actions_, "no such action: " + std::to_string(action));
  }
  for (int list = 0; list < lists; ++list) {
    int* begins = &begins_[std::size_t{1} * list * (actions_ + 1)];
    int* samples = &samples_[std::size_t{1} * list * max_batch_];
    // `begins` holds first the size of each group, then its end. The last loop goes backward and
    // turns ends into begins.
    std::fill_n(begins, actions_ + 1, 0);
    for (int b = 0; b < batch; ++b) ++begins[chosen[b * lists + list]];
    std::partial_sum(begins, begins + actions_ + 1, begins);
    for (int b = batch - 1; b >= 0; --b) samples[--begins[chosen[b * lists + list]]] = b;
  }
}

}  // namespace uper::cpu
