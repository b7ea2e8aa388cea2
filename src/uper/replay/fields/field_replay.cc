#include "uper/replay/fields/field_replay.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <string>

#include "uper/base/check.h"
#include "uper/base/files/byte_stream.h"
#include "uper/replay/fields/buffer_state.h"
#include "uper/replay/selectors/proportional_selector.h"

namespace uper {
namespace {

constexpr std::size_t kPrefetchAhead = 8;  // rows whose cache misses overlap
constexpr std::size_t kLine = 64;          // bytes of a cache line
constexpr std::size_t kMostPrefetchedLines = 32;

ReplayBufferOptions Checked(const FieldReplayOptions& options) {
  options.replay.buffer.Validate();
  options.replay.masks.Validate();
  for (const std::size_t bytes : options.field_bytes) {
    UPER_CHECK(bytes >= 1, "a field has at least one byte");
  }
  UPER_CHECK(!options.frames || options.frames->capacity == options.replay.buffer.capacity,
             "frames and replay buffer must have the same capacity");
  return options.replay.buffer;
}

}  // namespace

std::size_t FieldReplayOptions::RowBytes() const {
  return std::max<std::size_t>(
      1, std::accumulate(field_bytes.begin(), field_bytes.end(), std::size_t{0}));
}

std::size_t FieldReplayOptions::MemoryBytes() const {
  const std::size_t capacity = replay.buffer.capacity;
  return ProportionalSelector::MemoryBytes(capacity) + ByteRing::MemoryBytes(capacity, RowBytes()) +
         MaskStore::MemoryBytes(capacity, replay.masks) +
         (frames ? FrameStore::MemoryBytes(*frames) : 0) +
         (keep_components ? capacity * sizeof(Components) : 0);
}

FieldReplay::FieldReplay(const FieldReplayOptions& options, std::uint64_t seed)
    : options_(options),
      buffer_(Checked(options), ReplayStreams(seed).draws),
      rows_(options.replay.buffer.capacity, options.RowBytes()),
      masks_(options.replay.buffer.capacity, options.replay.masks, ReplayStreams(seed).masks),
      frames_(options.frames ? std::make_unique<FrameStore>(*options.frames) : nullptr),
      components_(options.keep_components
                      ? std::make_unique<ComponentStore>(options.replay.buffer.capacity)
                      : nullptr) {}

std::uint64_t FieldReplay::AddFrame(std::span<const std::uint8_t> pixels) {
  UPER_CHECK(frames_ != nullptr, "this memory stores no frames");
  const std::uint64_t frame = frames_->AddFrame(pixels);
  buffer_.EvictBefore(frames_->first_valid_id());
  return frame;
}

std::uint64_t FieldReplay::Add(std::span<const std::byte* const> fields, std::size_t count,
                               std::span<const double> priorities,
                               std::span<const FrameStacks> stacks) {
  UPER_CHECK(fields.size() == options_.field_bytes.size(), "one pointer per field");
  UPER_CHECK(priorities.empty() || priorities.size() == count, "one priority per transition");
  UPER_CHECK(frames_ == nullptr || stacks.size() == count, "the stacks of each transition");
  const std::uint64_t first_id = buffer_.next_id();
  // A frame may have been overwritten; then the transitions before it are in.
  const std::size_t most = frames_ != nullptr ? 1 : buffer_.capacity();
  for (std::size_t first = 0; first < count; first += most) {
    const std::size_t chunk = std::min(most, count - first);
    for (std::size_t i = first; i < first + chunk; ++i) {
      if (frames_ != nullptr) frames_->Put(first_id + i, stacks[i].s_tm1, stacks[i].s_t);
      PutRow(first_id + i, fields, i);
    }
    priorities.empty() ? buffer_.AddMany(chunk) : buffer_.AddMany(priorities.subspan(first, chunk));
  }
  return first_id;
}

void FieldReplay::PutRow(std::uint64_t id, std::span<const std::byte* const> fields,
                         std::size_t row) {
  std::byte* to = rows_.Slot(id).data();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::size_t bytes = options_.field_bytes[f];
    std::memcpy(to, fields[f] + row * bytes, bytes);
    to += bytes;
  }
  masks_.Draw(id);
  if (components_ != nullptr) components_->Clear(id);
}

void FieldReplay::PrefetchRow(std::uint64_t id) const {
  const std::byte* row = rows_.Get(id).data();
  const std::size_t lines = std::min(rows_.record_bytes() / kLine + 1, kMostPrefetchedLines);
  for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(row + line * kLine);
}

void FieldReplay::CopyRow(std::uint64_t id, std::size_t row, const FieldBatch& out) const {
  const std::byte* from = rows_.Get(id).data();
  for (std::size_t f = 0; f < out.fields.size(); ++f) {
    const std::size_t bytes = options_.field_bytes[f];
    if (out.fields[f] != nullptr) std::memcpy(out.fields[f] + row * bytes, from, bytes);
    from += bytes;
  }
  if (out.masks != nullptr) out.masks[row] = masks_.Get(id);
  if (frames_ == nullptr || out.s_tm1 == nullptr || out.s_t == nullptr) return;
  const std::size_t bytes = frames_->observation_bytes();
  frames_->Gather(id, {out.s_tm1 + row * bytes, bytes}, {out.s_t + row * bytes, bytes});
}

void FieldReplay::Gather(std::span<const std::uint64_t> ids, const FieldBatch& out) const {
  UPER_CHECK(out.fields.size() == options_.field_bytes.size(), "one pointer per field");
  for (const std::uint64_t id : ids) UPER_CHECK(buffer_.Contains(id), "no such transition");
  for (std::size_t i = 0; i < std::min(kPrefetchAhead, ids.size()); ++i) PrefetchRow(ids[i]);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i + kPrefetchAhead < ids.size()) PrefetchRow(ids[i + kPrefetchAhead]);
    CopyRow(ids[i], i, out);
  }
}

void FieldReplay::Sample(const WeightOptions& options, const SampleView& sample,
                         const FieldBatch& out) {
  buffer_.Sample(options, sample);
  Gather(sample.ids, out);
}

void FieldReplay::Save(StateWriter& out) const {
  SaveBuffer(buffer_, out);
  const std::uint64_t first = buffer_.first_id();
  const std::uint64_t next = buffer_.next_id();
  const MaskStoreState masks = masks_.GetState(first, next);
  out.Block("mask stream", std::as_bytes(std::span(&masks.stream_position, 1)));
  out.Block("masks", std::as_bytes(std::span(masks.rows)));
  out.Begin("rows", size() * rows_.record_bytes());
  for (std::uint64_t id = first; id < next; ++id) out.Append(rows_.Get(id));
  out.End();
  if (frames_ != nullptr) SaveFrames(out);
  if (components_ != nullptr) components_->Save(buffer_, out);
}

void FieldReplay::SaveFrames(StateWriter& out) const {
  const std::uint64_t first = frames_->first_frame();
  const std::uint64_t next = frames_->next_frame();
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  for (const std::uint64_t number :
       {first, next, frames_->first_valid_id(), buffer_.next_id(), buffer_.first_id()}) {
    writer.Write(number);
  }
  out.Block("frame numbers", bytes);
  out.Begin("frames", (next - first) * frames_->frame_bytes());
  for (std::uint64_t frame = first; frame < next; ++frame) {
    out.Append(std::as_bytes(frames_->Frame(frame)));
  }
  out.End();
  const std::size_t width = 2 * options_.frames->stack_depth;
  out.Begin("stacks", buffer_.size() * width * sizeof(std::uint32_t));
  for (std::uint64_t id = buffer_.first_id(); id < buffer_.next_id(); ++id) {
    out.Append(std::as_bytes(frames_->StackSlots(id)));
  }
  out.End();
}

void FieldReplay::Load(StateReader& in) {
  LoadBuffer(in, buffer_);
  const std::vector<std::byte> position = in.Block("mask stream", sizeof(std::uint64_t));
  MaskStoreState masks{.first_id = buffer_.first_id(),
                       .rows = {},
                       .stream_position = ByteReader(position).Read<std::uint64_t>()};
  masks.rows.resize(size() * masks_.bytes_per_mask());
  ReadArray(in, "masks", masks.rows);
  masks_.SetState(masks, buffer_.first_id(), buffer_.next_id());
  if (in.Begin("rows") != buffer_.size() * rows_.record_bytes())
    in.Fail("is of another memory: its rows do not fit");
  for (std::uint64_t id = buffer_.first_id(); id < buffer_.next_id(); ++id) in.Read(rows_.Slot(id));
  in.End();
  if (frames_ != nullptr) LoadFrames(in);
  if (components_ != nullptr) components_->Load(buffer_, in);
}

void FieldReplay::LoadFrames(StateReader& in) {
  const std::vector<std::byte> numbers = in.Block("frame numbers", 5 * sizeof(std::uint64_t));
  ByteReader reader(numbers);
  FrameStoreState state;
  state.first_frame = reader.Read<std::uint64_t>();
  state.next_frame = reader.Read<std::uint64_t>();
  state.first_valid_id = reader.Read<std::uint64_t>();
  state.next_id = reader.Read<std::uint64_t>();
  state.first_id = reader.Read<std::uint64_t>();
  state.already_loaded = true;
  const std::uint64_t bytes = in.Begin("frames");
  const std::uint64_t count = bytes / frames_->frame_bytes();
  if (state.next_frame < state.first_frame || count != state.next_frame - state.first_frame ||
      bytes % frames_->frame_bytes() != 0 || count > frames_->frame_capacity()) {
    in.Fail("is of another memory: its frames do not fit");
  }
  std::vector<std::uint8_t> pixels(frames_->frame_bytes());
  for (std::uint64_t frame = state.first_frame; frame < state.next_frame; ++frame) {
    in.Read(std::as_writable_bytes(std::span(pixels)));
    frames_->RestoreFrames(frame, pixels);
  }
  in.End();
  const std::size_t width = 2 * options_.frames->stack_depth;
  state.stacks.resize(size() * width);
  ReadArray(in, "stacks", state.stacks);
  frames_->SetState(state, buffer_.first_id(), buffer_.next_id());
}

void FieldReplay::CheckValid() const {
  buffer_.CheckValid();
  masks_.CheckValid();
  if (frames_ == nullptr) return;
  frames_->CheckValid();
  UPER_CHECK(buffer_.first_id() >= frames_->first_valid_id(),
             "a live transition has lost its observations");
}

}  // namespace uper
