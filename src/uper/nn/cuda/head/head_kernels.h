#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/core/host_device.h"
#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper {

// The linear head on the GPU (formula and layouts: nn/cpu/head.h). Every function enqueues one
// kernel. Only the blocks of asked-for actions are read. Sums have a fixed order.

struct HeadShape {
  int actions = 1;
  int members = 1;
  int hidden = 1;  // of one member
  int outputs = 1;
  bool separate_hidden = false;
  bool shared_bias = false;

  UPER_HOST_DEVICE int hidden_total() const { return separate_hidden ? members * hidden : hidden; }
};
HeadShape HeadShapeOf(const NetworkSpec& spec);

// The head's optimiser takes so many hidden units of an (action, member) at a time: a group.
inline constexpr int kHeadStepUnits = 4;
UPER_HOST_DEVICE inline int HeadStepGroups(const HeadShape& shape) {
  return (shape.hidden + kHeadStepUnits - 1) / kHeadStepUnits;
}

// Averages of a head, as HeadMeanWeights of the CPU, but along the hidden units.
struct HeadTablePointers {
  float* member_weights = nullptr;  // [member, action, hidden unit]
  float* member_bias = nullptr;     // [member, action]
  float* mean_weights = nullptr;    // [action, hidden unit (of all members, if separate)]
  // [action, HeadStepGroups()]: how many members the head's optimiser has averaged; 0 between its
  // steps.
  unsigned* members_done = nullptr;
};

// The hidden units are cut into so many parts whose sums the reader adds up (SumOfParts).
inline constexpr int kHeadParts = 4;

// Outputs of one action a (sample, member), or of all actions; without the bias.
struct HeadSelection {
  const float* w = nullptr;
  const float* hidden = nullptr;  // [batch, hidden_total]
  // The action of (b, k) is actions[b * sample_stride + k * member_stride]; null: all actions.
  const int* actions = nullptr;
  int sample_stride = 0;
  int member_stride = 0;
  // The actions were there before the kernel before this one, so its end need not be awaited.
  bool actions_ready = false;
  bool w_read_again = false;  // soon after: the weights stay in the cache
  float* parts = nullptr;     // [part, batch, (action,) member, output]
};
// A value as it is shown to the host, in one piece: whoever sees its number sees the value.
inline float ShownValue(std::uint64_t shown) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(shown));
}
inline int ShownCount(std::uint64_t shown) { return static_cast<int>(shown >> 32); }

// values [batch, member, action] = bias + hidden x table of each member. chosen [batch, member]
// gets the greedy actions if not null. `members` and `hidden` may describe the mean table: one
// member over all hidden units, whose bias is the mean of bias_members.
struct HeadMeans {
  int batch = 1;
  int members = 1;
  int hidden = 1;
  int actions = 1;
  const float* units = nullptr;  // [batch, unit_stride]; member k reads from k * member_step on
  int unit_stride = 0;
  int member_step = 0;
  const float* weights = nullptr;  // [member, action, hidden]
  const float* bias = nullptr;     // [member, action]
  int bias_members = 1;            // more than 1 only if members = 1
  float* values = nullptr;
  int* chosen = nullptr;
  // If not null, [batch]: how often a sample's values (members = 1) were computed. They are shown
  // to a host that looks on then, [batch, action] in its memory, instead of stored in `values`.
  // With Follow::kOverlap, weights, bias and counts must have been there before the first of the
  // kernels that overlap was started.
  int* counts = nullptr;
  std::uint64_t* shown = nullptr;
};

inline constexpr std::size_t kMaxSelections = 2;
void LaunchSelect(const HeadShape& shape, int batch, std::span<const HeadSelection> selections,
                  cudaStream_t stream, Follow follow = Follow::kAfter);
void LaunchMeans(const HeadMeans& means, cudaStream_t stream, Follow follow = Follow::kAfter);

// values [batch, member, action]: the expected atom of each member's distribution, from the parts
// of all actions' outputs.
struct AtomValues {
  int batch = 1;
  const float* parts = nullptr;
  const float* bias = nullptr;
  double low = 0;
  double spacing = 0;
  float* values = nullptr;
};
void LaunchAtomValues(const HeadShape& shape, const AtomValues& call, cudaStream_t stream);

// chosen [batch, member] from values [batch, member, action]: each member's own greedy action, or
// that of the sum over members for all.
void LaunchChoose(const HeadShape& shape, int batch, bool ensemble, const float* values,
                  int* chosen, cudaStream_t stream);
// q [batch, action]: mean over members of values [batch, member, action].
void LaunchMemberMean(const HeadShape& shape, int batch, const float* values, float* q,
                      cudaStream_t stream);

// What the head's gradient is made of: d_out [batch, member, output] is the derivative by the taken
// actions' outputs, 0 for members that do not learn (bit k of masks[b] is 0).
struct HeadGradient {
  int batch = 1;
  const int* actions = nullptr;  // [batch]
  const std::uint64_t* masks = nullptr;
  const float* hidden = nullptr;
  const float* d_out = nullptr;
};
// parts [member, batch, hidden]: each member's share of the hidden layer's gradient.
void LaunchBackwardHidden(const HeadShape& shape, const HeadGradient& gradient, const float* w,
                          float* parts, cudaStream_t stream, Follow follow = Follow::kAfter);
// d_hidden [batch, hidden_total], through the hidden layer's ReLU.
void LaunchSumHidden(const HeadShape& shape, const HeadGradient& gradient, const float* parts,
                     float* d_hidden, cudaStream_t stream, Follow follow = Follow::kAfter);
// The gradient of the bias [action, member, output], or of the one shared number. squares
// [BiasBlocks()]: sums over parts of its squares.
int BiasBlocks(const HeadShape& shape);
void LaunchBackwardBias(const HeadShape& shape, const HeadGradient& gradient, float* d_bias,
                        double* squares, cudaStream_t stream);
// squares [member, kSquareParts]: parts of the sums over the squared gradient of the weights,
// without forming it. The gradient of one block is a sum of outer products, so its squared norm is
//   sum over samples s, t of (hidden_s . hidden_t) (d_out_s . d_out_t).
inline constexpr int kSquareParts = 8;
inline int HeadSquareCount(const HeadShape& shape) { return shape.members * kSquareParts; }
void LaunchHeadSquares(const HeadShape& shape, const HeadGradient& gradient, double* squares,
                       cudaStream_t stream);
// The gradient itself [action, member, hidden, output].
void LaunchHeadWeights(const HeadShape& shape, const HeadGradient& gradient, float* dw,
                       cudaStream_t stream);

// Averages from the head's weights and bias.
void LaunchTables(const HeadShape& shape, const float* w, const float* bias,
                  const HeadTablePointers& tables, cudaStream_t stream);

}  // namespace uper
