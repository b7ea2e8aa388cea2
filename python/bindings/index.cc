#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "counts.h"
#include "uper/replay/fields/buffer_state.h"
#include "uper/replay/fields/slot_index.h"
#include "uper/replay/transition_replay.h"

namespace nb = nanobind;

namespace uper::python {
namespace {

void SaveIndex(const ReplayBuffer& buffer, StateWriter& out) { SaveBuffer(buffer, out); }
void SaveIndex(const SlotIndex& index, StateWriter& out) { index.Save(out); }
void LoadIndex(StateReader& in, ReplayBuffer& buffer) { LoadBuffer(in, buffer); }
void LoadIndex(StateReader& in, SlotIndex& index) { index.Load(in); }

// uper.PriorityIndex: a ReplayBuffer or a SlotIndex with a lock.
template <typename Index>
class Locked {
 public:
  Locked(const nb::dict& options, std::uint64_t seed)
      : index_(BufferOptionsFrom(options), ReplayStreams(seed).draws) {}

  Index& index() { return index_; }
  ObjectLock& lock() { return lock_; }

  void CheckLive(std::uint64_t id) {
    if (!index_.Contains(id)) {
      throw Error(ErrorKind::kUsage, "there is no item with id " + std::to_string(id));
    }
  }

  void Sample(const nb::object& ids, const nb::object& probabilities, const nb::object& weights,
              double importance_exponent, int normalization) {
    const auto n = nb::cast<std::size_t>(ids.attr("size"));
    const ArrayView id_view(ids, n * sizeof(std::uint64_t), true, "ids");
    const ArrayView probability_view(probabilities, n * sizeof(double), true, "probabilities");
    const ArrayView weight_view(weights, n * sizeof(float), true, "weights");
    const ObjectLock::Guard guard(lock_);
    if (index_.size() == 0) {
      throw Error(ErrorKind::kUsage, "the index is empty: add items before sample()");
    }
    index_.Sample({.importance_exponent = importance_exponent,
                   .normalization = static_cast<WeightNormalization>(normalization)},
                  {.ids = id_view.values<std::uint64_t>(),
                   .probabilities = probability_view.values<double>(),
                   .weights = weight_view.values<float>()});
  }

  std::optional<Counts> SetPriorities(const nb::object& ids, const nb::object& priorities) {
    return SetPrioritiesOf(index_, lock_, ids, priorities);
  }

  nb::bytes State() {
    const ObjectLock::Guard guard(lock_);
    const std::vector<std::byte> bytes =
        StateBytes([&](StateWriter& out) { SaveIndex(index_, out); });
    return nb::bytes(bytes.data(), bytes.size());
  }
  void Restore(const nb::bytes& state) {
    const ObjectLock::Guard guard(lock_);
    ReadStateBytes({static_cast<const std::byte*>(state.data()), state.size()},
                   [&](StateReader& in) { LoadIndex(in, index_); });
  }
  void Save(const std::string& path, const nb::bytes& layout) {
    const ObjectLock::Guard guard(lock_);
    WriteStateFile(path, [&](StateWriter& out) {
      out.Block("layout", {static_cast<const std::byte*>(layout.data()), layout.size()});
      SaveIndex(index_, out);
    });
  }
  void Load(const std::string& path) {
    const ObjectLock::Guard guard(lock_);
    ReadStateFile(path, [&](StateReader& in) {
      in.Block("layout", kMostLayoutBytes);
      LoadIndex(in, index_);
    });
  }

 private:
  Index index_;
  ObjectLock lock_;
};

template <typename Index>
nb::class_<Locked<Index>> BindLocked(nb::module_& module, const char* name) {
  using Self = Locked<Index>;
  nb::class_<Self> type(module, name);
  type.def(nb::init<const nb::dict&, std::uint64_t>())
      .def("sample", &Self::Sample)
      .def("set_priorities", &Self::SetPriorities)
      .def("state", &Self::State)
      .def("restore", &Self::Restore)
      .def("save", &Self::Save)
      .def("load", &Self::Load)
      .def("check",
           [](Self& self) {
             const ObjectLock::Guard guard(self.lock());
             self.index().CheckValid();
           })
      .def("__len__", [](Self& self) {
        const ObjectLock::Guard guard(self.lock());
        return self.index().size();
      });
  return type;
}

// The optional float64 array of priorities for `count` items.
std::optional<ArrayView> Priorities(const nb::object& priorities, std::size_t count) {
  if (priorities.is_none()) return std::nullopt;
  return ArrayView(priorities, count * sizeof(double), false, "priorities");
}

std::span<const double> ValuesOf(const std::optional<ArrayView>& view) {
  return view ? view->values<const double>() : std::span<const double>();
}

}  // namespace

void BindIndex(nb::module_& module) {
  using Ring = Locked<ReplayBuffer>;
  auto ring = BindLocked<ReplayBuffer>(module, "RingIndex");
  BindBufferParts(ring, [](Ring& self) -> ReplayBuffer& { return self.index(); });
  ring.def(
      "add",
      [](Ring& self, std::size_t count, const nb::object& priorities) {
        const std::optional<ArrayView> given = Priorities(priorities, count);
        const ObjectLock::Guard guard(self.lock());
        ReplayBuffer& buffer = self.index();
        const std::uint64_t first = buffer.next_id();
        for (std::size_t done = 0; done < count; done += buffer.capacity()) {
          const std::size_t part = std::min(buffer.capacity(), count - done);
          given ? buffer.AddMany(ValuesOf(given).subspan(done, part)) : buffer.AddMany(part);
        }
        return first;
      },
      nb::arg("count"), nb::arg("priorities").none());

  using Slots = Locked<SlotIndex>;
  auto slots = BindLocked<SlotIndex>(module, "SlotIndex");
  BindIndexParts(slots, [](Slots& self) -> SlotIndex& { return self.index(); });
  slots
      .def(
          "put",
          [](Slots& self, const nb::object& which, const nb::object& priorities,
             const nb::object& ids) {
            const auto n = nb::cast<std::size_t>(ids.attr("size"));
            const ArrayView from(which, n * sizeof(std::uint64_t), false, "slots");
            const ArrayView to(ids, n * sizeof(std::uint64_t), true, "ids");
            const std::optional<ArrayView> given = Priorities(priorities, n);
            const ObjectLock::Guard guard(self.lock());
            self.index().Put(from.values<const std::uint64_t>(), ValuesOf(given),
                             to.values<std::uint64_t>());
          },
          nb::arg("slots"), nb::arg("priorities").none(), nb::arg("ids"))
      .def("drop", [](Slots& self, const nb::object& which) {
        const auto n = nb::cast<std::size_t>(which.attr("size"));
        const ArrayView from(which, n * sizeof(std::uint64_t), false, "slots");
        const ObjectLock::Guard guard(self.lock());
        self.index().Drop(from.values<const std::uint64_t>());
      });
}

}  // namespace uper::python
