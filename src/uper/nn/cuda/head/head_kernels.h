#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "uper/core/host_device.h"
#include "uper/nn/cuda/runtime/launch_order.h"
#include "uper/nn/network_spec.h"

namespace uper::cuda {

// The linear head on the GPU (formula and layouts: nn/cpu/head.h). Each function enqueues one
// kernel. Only the weights of the requested actions are read. Sums have a fixed order.

struct HeadShape {
  int actions = 1;
  int members = 1;
  int hidden = 1;  // per member
  int outputs = 1;
  bool separate_hidden = false;
  bool shared_bias = false;

  UPER_HOST_DEVICE int hidden_total() const { return separate_hidden ? members * hidden : hidden; }
};
HeadShape HeadShapeOf(const NetworkSpec& spec);

// The head's optimizer updates this many hidden units of an (action, member) at a time: a group.
inline constexpr int kHeadUpdateUnits = 4;
UPER_HOST_DEVICE inline int HeadUpdateGroups(const HeadShape& shape) {
  return (shape.hidden + kHeadUpdateUnits - 1) / kHeadUpdateUnits;
}

// Mean weights of a head, like HeadMeanWeights of the CPU, but contiguous along the hidden units.
struct HeadMeanWeightPointers {
  float* member_weights = nullptr;  // [member, action, hidden unit]
  float* member_bias = nullptr;     // [member, action]
  // [action, hidden unit]; of all members if the hidden layers are separate
  float* ensemble_weights = nullptr;
  // [action, HeadUpdateGroups()]: number of members whose means the optimizer has computed; 0
  // between updates.
  unsigned* members_done = nullptr;
};

// The hidden units are cut into this many parts. The reader adds up their sums (SumOfParts).
inline constexpr int kHeadParts = 4;

// Computes the outputs of one action per (sample, member), or of all actions; without the bias.
struct HeadForwardChosen {
  const float* w = nullptr;
  const float* hidden = nullptr;  // [batch, hidden_total]
  // The action of (b, k) is actions[b * sample_stride + k * member_stride]; null: all actions.
  const int* actions = nullptr;
  int sample_stride = 0;
  int member_stride = 0;
  // The actions were written before the previous kernel started, so its end need not be awaited.
  bool actions_ready = false;
  bool w_read_again = false;  // read again soon: the weights stay in the cache
  float* parts = nullptr;     // [part, batch, (action,) member, output]
};
// A mailbox entry holds a value and its sequence number in one word, so that they arrive together.
inline float MailboxValue(std::uint64_t entry) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(entry));
}
inline int MailboxSequence(std::uint64_t entry) { return static_cast<int>(entry >> 32); }

// values [batch, member, action] = bias + hidden x mean weights of each member. If `chosen` [batch,
// member] is not null, it gets the greedy actions. `members` and `hidden` may also describe the
// ensemble mean: one member over all hidden units, whose bias is the mean of bias_members.
struct HeadForwardMean {
  int batch = 1;
  int members = 1;
  int hidden = 1;
  int actions = 1;
  const float* units = nullptr;  // [batch, unit_stride]; member k reads from offset k * member_step
  int unit_stride = 0;
  int member_step = 0;
  const float* weights = nullptr;  // [member, action, hidden]
  const float* bias = nullptr;     // [member, action]
  int bias_members = 1;            // larger than 1 only if members = 1
  float* values = nullptr;
  int* chosen = nullptr;
  // [batch] sequence numbers. If set, values are published to the host's mailbox [batch, action]
  // instead of `values`; needs members = 1. With LaunchOrder::kOverlapPrevious, weights, bias and
  // sequence numbers must have been written before the first of the overlapping kernels started.
  int* sequences = nullptr;
  std::uint64_t* mailbox = nullptr;
};

inline constexpr std::size_t kMaxSelections = 2;
void LaunchForwardChosen(const HeadShape& shape, int batch,
                         std::span<const HeadForwardChosen> selections, cudaStream_t stream,
                         LaunchOrder order = LaunchOrder::kSerial);
void LaunchForwardMean(const HeadForwardMean& means, cudaStream_t stream,
                       LaunchOrder order = LaunchOrder::kSerial);

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

// chosen [batch, member] from values [batch, member, action]: each member's own greedy action, or,
// with `ensemble`, the greedy action of the sum over members.
void LaunchChoose(const HeadShape& shape, int batch, bool ensemble, const float* values,
                  int* chosen, cudaStream_t stream);
// q [batch, action]: mean over members of values [batch, member, action].
void LaunchMemberMean(const HeadShape& shape, int batch, const float* values, float* q,
                      cudaStream_t stream);

// Inputs of the head's gradient. d_out [batch, member, output] is the derivative with respect to
// the outputs of the taken actions. It is 0 for members that do not learn (bit k of masks[b] is 0).
struct HeadGradient {
  int batch = 1;
  const int* actions = nullptr;  // [batch]
  const std::uint64_t* masks = nullptr;
  const float* hidden = nullptr;
  const float* d_out = nullptr;
};
// parts [member, batch, hidden]: each member's part of the hidden layer's gradient.
void LaunchBackwardHidden(const HeadShape& shape, const HeadGradient& gradient, const float* w,
                          float* parts, cudaStream_t stream,
                          LaunchOrder order = LaunchOrder::kSerial);
// d_hidden [batch, hidden_total], after the hidden layer's ReLU.
void LaunchSumHidden(const HeadShape& shape, const HeadGradient& gradient, const float* parts,
                     float* d_hidden, cudaStream_t stream,
                     LaunchOrder order = LaunchOrder::kSerial);
// The gradient of the bias [action, member, output], or of the one shared bias. squares
// [BiasBlocks()]: partial sums of its squares.
int BiasBlocks(const HeadShape& shape);
void LaunchBackwardBias(const HeadShape& shape, const HeadGradient& gradient, float* d_bias,
                        double* squares, cudaStream_t stream);
// squares [member, kSquareParts]: partial sums of the squared gradient of the weights, without
// forming it. The gradient of one block is a sum of outer products, so its squared norm is
//   sum over samples s, t of (hidden_s . hidden_t) (d_out_s . d_out_t).
inline constexpr int kSquareParts = 8;
inline int HeadSquareCount(const HeadShape& shape) { return shape.members * kSquareParts; }
void LaunchHeadSquares(const HeadShape& shape, const HeadGradient& gradient, double* squares,
                       cudaStream_t stream);
// The gradient of the weights [action, member, hidden, output].
void LaunchHeadWeights(const HeadShape& shape, const HeadGradient& gradient, float* dw,
                       cudaStream_t stream);

// Computes the mean weights from the head's weights and bias.
void LaunchHeadMeanWeights(const HeadShape& shape, const float* w, const float* bias,
                           const HeadMeanWeightPointers& mean_weights, cudaStream_t stream);

}  // namespace uper::cuda
