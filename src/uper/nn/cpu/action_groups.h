#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace uper::cpu {

// The samples of a batch, grouped by the action chosen for them, for one or several lists of
// actions. The head then reads the block of an action once for all its samples. Samples of a group
// keep the order of the batch. Only the constructor allocates.
class ActionGroups {
 public:
  ActionGroups(int actions, int lists, int max_batch);

  // chosen [batch, lists]: the action of each sample in each list. Throws Error(kInternal) for an
  // action out of range.
  void Build(std::span<const int> chosen, int batch, int lists);

  // The samples of `action` in `list`, ascending.
  std::span<const int> Samples(int list, int action) const {
    const int* begin = &begins_[list * (actions_ + 1) + action];
    return {&samples_[std::size_t{1} * list * max_batch_ + begin[0]],
            static_cast<std::size_t>(begin[1] - begin[0])};
  }

 private:
  int actions_;
  int max_batch_;
  std::vector<int> begins_;   // [list, action + 1]
  std::vector<int> samples_;  // [list, max_batch]
};

}  // namespace uper::cpu
