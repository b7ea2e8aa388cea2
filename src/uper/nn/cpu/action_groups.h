#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace uper::cpu {

// The samples of a batch sorted by the action chosen for them, for one or several lists of actions:
// the head's block of an action is then read once for all its samples. Order within a group is the
// order of the batch. Memory is taken in the constructor only.
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
