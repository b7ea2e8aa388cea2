#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <tuple>

#include "bindings.h"
#include "counts.h"
#include "field_arrays.h"
#include "object_lock.h"
#include "uper/base/error.h"
#include "uper/replay/fields/step_replay.h"

namespace nb = nanobind;

namespace uper::python {
namespace {

PriorityRule RuleFrom(const std::string& name) {
  const std::optional<PriorityRule> rule = PriorityRuleFromName(name);
  if (rule && InfoOf(*rule).for_networks()) return *rule;
  throw Error(ErrorKind::kUsage, "there is no priority rule '" + name + "' for networks");
}

// A byte string as memory.
std::span<const std::byte> BytesOf(const nb::bytes& bytes) {
  return {static_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// The replay memory behind uper.Replay and uper.FrameReplay. If Python's arrays do not fit, the
// methods return nothing, and Python converts them.
class Memory {
 public:
  Memory(const nb::list& fields, const StepReplayOptions& options, bool folds_steps,
         std::uint64_t seed)
      : options_(options), folds_steps_(folds_steps) {
    for (const nb::handle field : fields) {
      const auto [name, shape, format, bytes] =
          nb::cast<std::tuple<nb::object, std::vector<Py_ssize_t>, std::string, std::size_t>>(
              field);
      types_.push_back({name, nb::cast<std::string>(name), shape, format, bytes});
      options_.replay.field_bytes.push_back(bytes);
    }
    if (folds_steps_) {
      steps_ = std::make_unique<StepReplay>(options_, seed);
    } else {
      alone_ = std::make_unique<FieldReplay>(options_.replay, seed);
    }
  }

  FieldReplay& replay() { return folds_steps_ ? steps_->replay() : *alone_; }
  ReplayBuffer& buffer() { return replay().mutable_buffer(); }
  StepReplay& steps() {
    if (!folds_steps_) {
      throw Error(ErrorKind::kUsage,
                  "step() and reset() need the fields obs, action, reward, discount and next_obs; "
                  "use add() for other fields");
    }
    return *steps_;
  }
  ComponentStore& component_store() {
    if (!options_.replay.keep_components) {
      throw Error(ErrorKind::kUsage, "this memory keeps no components");
    }
    return replay().components();
  }
  const FrameStoreOptions& frame_options() const {
    if (!options_.replay.frames) throw Error(ErrorKind::kUsage, "this memory stores no frames");
    return *options_.replay.frames;
  }
  ObjectLock& lock() { return lock_; }

  // The first id and the number of transitions; nothing if the arrays need a conversion.
  std::optional<std::tuple<std::uint64_t, std::size_t>> Add(const nb::dict& arrays,
                                                            const nb::object& priorities) {
    FieldArrays collected;
    std::optional<ArrayView> given;
    if (!CollectArrays(types_, arrays, collected)) return std::nullopt;
    if (!priorities.is_none()) {
      given = ExactArray(priorities, "d", "d");
      if (!given) return std::nullopt;
    }
    const std::span<const double> values =
        given ? given->values<const double>() : std::span<const double>();
    if (given && values.size() != collected.count) {
      throw Error(ErrorKind::kUsage, "there are " + std::to_string(values.size()) +
                                         " priorities for " + std::to_string(collected.count) +
                                         " transitions");
    }
    const ObjectLock::Guard guard(lock_);
    std::uint64_t first = 0;
    const auto add = [&] { first = replay().Add(collected.data, collected.count, values); };
    const std::size_t bytes = collected.count * options_.replay.RowBytes();
    bytes >= kBytesWorthReleasing ? Released(add) : add();
    return std::tuple(first, collected.count);
  }

  void Sample(const nb::tuple& out, double importance_exponent, int normalization) {
    OutArrays arrays(*this, out);
    const ObjectLock::Guard guard(lock_);
    if (replay().size() == 0) {
      throw Error(ErrorKind::kUsage, "the replay memory is empty: add transitions before sample()");
    }
    const WeightOptions options{.importance_exponent = importance_exponent,
                                .normalization = static_cast<WeightNormalization>(normalization)};
    const auto draw = [&] { replay().Sample(options, arrays.sample, arrays.batch); };
    arrays.bytes >= kBytesWorthReleasing ? Released(draw) : draw();
  }

  void Gather(const nb::tuple& out) {
    OutArrays arrays(*this, out);
    const ObjectLock::Guard guard(lock_);
    for (const std::uint64_t id : arrays.sample.ids) CheckLive(id);
    const auto copy = [&] { replay().Gather(arrays.sample.ids, arrays.batch); };
    arrays.bytes >= kBytesWorthReleasing ? Released(copy) : copy();
  }

  std::optional<Counts> SetPriorities(const nb::object& ids, const nb::object& priorities) {
    return SetPrioritiesOf(buffer(), lock_, ids, priorities);
  }

  // Components [n, 5] as float32, in the order of struct Components.
  std::optional<Counts> SetComponents(const nb::object& ids, const nb::object& components,
                                      const std::string& rule, double floor, double cap) {
    const std::optional<ArrayView> which = ExactArray(ids, "L", "Q");
    if (!which) return std::nullopt;
    const auto id_values = which->values<const std::uint64_t>();
    const ArrayView values(components, id_values.size() * sizeof(Components), false, "components");
    const ObjectLock::Guard guard(lock_);
    const UpdateCounts counts =
        component_store().Set(buffer(), id_values, values.values<const Components>(),
                              RuleFrom(rule), {.aleatoric_floor = floor, .cap = cap});
    return Counts{counts.updated, counts.evicted, counts.invalid};
  }

  Counts Derive(const std::string& rule, double floor, double cap) {
    const ObjectLock::Guard guard(lock_);
    UpdateCounts counts;
    Released([&] {
      counts = component_store().Derive(buffer(), RuleFrom(rule),
                                        {.aleatoric_floor = floor, .cap = cap});
    });
    return {counts.updated, counts.evicted, counts.invalid};
  }

  // Into `out`, float32 [n, 5]; all ids must be live.
  void ReadComponents(const nb::object& ids, const nb::object& out) {
    const std::optional<ArrayView> which = ExactArray(ids, "L", "Q");
    if (!which) throw Error(ErrorKind::kUsage, "ids must be whole numbers");
    const auto id_values = which->values<const std::uint64_t>();
    const ArrayView to(out, id_values.size() * sizeof(Components), true, "out");
    const ObjectLock::Guard guard(lock_);
    for (const std::uint64_t id : id_values) CheckLive(id);
    for (std::size_t i = 0; i < id_values.size(); ++i) {
      to.values<Components>()[i] = component_store().Get(id_values[i]);
    }
  }

  std::uint64_t AddFrame(const nb::object& pixels) {
    const ArrayView view(pixels, frame_options().frame_bytes, false, "the frame");
    const ObjectLock::Guard guard(lock_);
    return replay().AddFrame(view.values<const std::uint8_t>());
  }

  // Transitions whose stacks are frame ids [count, 2, depth] (2^64 - 1: a frame of zeros).
  std::tuple<std::uint64_t, std::size_t> AddStacks(const nb::dict& arrays,
                                                   const nb::object& priorities,
                                                   const nb::object& stacks) {
    FieldArrays collected;
    if (!CollectArrays(types_, arrays, collected)) {
      throw Error(ErrorKind::kUsage, "the arrays of add() do not fit the fields");
    }
    const std::size_t depth = frame_options().stack_depth;
    const std::size_t count = collected.count;
    const ArrayView ids(stacks, count * 2 * depth * sizeof(std::uint64_t), false, "stacks");
    std::optional<ArrayView> given;
    if (!priorities.is_none()) {
      given.emplace(priorities, count * sizeof(double), false, "priorities");
    }
    const ObjectLock::Guard guard(lock_);
    std::vector<FrameStacks> list;
    for (std::size_t i = 0; i < count; ++i) {
      const auto pair = ids.values<const std::uint64_t>().subspan(2 * i * depth, 2 * depth);
      list.push_back({CheckedStack(pair.first(depth)), CheckedStack(pair.last(depth))});
    }
    const auto values = given ? given->values<const double>() : std::span<const double>();
    return {replay().Add(collected.data, count, values, list), count};
  }

  void Reset(const nb::object& environments, const nb::tuple& observations) {
    const std::vector<std::size_t> rows = Environments(environments);
    const Pointers pointers(observations, ObservationBytes(), rows.size(), "obs");
    const ObjectLock::Guard guard(lock_);
    steps().Reset(rows, pointers.data);
  }

  std::tuple<std::uint64_t, std::size_t> Step(
      const nb::object& environments, const nb::tuple& step_arrays, const nb::object& rewards,
      const nb::tuple& observations, const nb::object& terminated, const nb::object& truncated,
      const nb::object& final_observations, int autoreset) {
    const std::vector<std::size_t> rows = Environments(environments);
    const std::size_t n = rows.size();
    std::vector<std::size_t> step_bytes;
    for (const std::size_t field : options_.fields.steps) step_bytes.push_back(types_[field].bytes);
    const Pointers steps_data(step_arrays, step_bytes, n, "the action");
    const Pointers seen(observations, ObservationBytes(), n, "obs");
    std::optional<Pointers> last;
    if (!final_observations.is_none()) {
      last.emplace(nb::cast<nb::tuple>(final_observations), ObservationBytes(), n, "final_obs");
    }
    const ArrayView reward(rewards, n * sizeof(double), false, "reward");
    const ArrayView ended(terminated, n, false, "terminated");
    const ArrayView cut(truncated, n, false, "truncated");
    const ObjectLock::Guard guard(lock_);
    const AddedTransitions added =
        steps().Step({.environments = rows,
                      .steps = steps_data.data,
                      .rewards = reward.values<const double>().data(),
                      .terminated = ended.values<const std::uint8_t>().data(),
                      .truncated = cut.values<const std::uint8_t>().data(),
                      .observations = seen.data,
                      .final_observations = last ? std::span<const std::byte* const>(last->data)
                                                 : std::span<const std::byte* const>(),
                      .autoreset = static_cast<Autoreset>(autoreset)});
    return {added.first_id, added.count};
  }

  void Save(const std::string& path, const nb::bytes& layout) {
    const ObjectLock::Guard guard(lock_);
    const std::span<const std::byte> description = BytesOf(layout);
    Released([&] { WriteStateFile(path, [&](StateWriter& out) { Write(out, description); }); });
  }

  nb::bytes State(const nb::bytes& layout) {
    const ObjectLock::Guard guard(lock_);
    const std::span<const std::byte> description = BytesOf(layout);
    std::vector<std::byte> bytes;
    Released([&] { bytes = StateBytes([&](StateWriter& out) { Write(out, description); }); });
    return nb::bytes(bytes.data(), bytes.size());
  }

  void Load(const std::string& path) {
    const ObjectLock::Guard guard(lock_);
    Released([&] { ReadStateFile(path, [&](StateReader& in) { Read(in); }); });
  }

  void Restore(const nb::bytes& state) {
    const ObjectLock::Guard guard(lock_);
    const std::span<const std::byte> bytes = BytesOf(state);
    Released([&] { ReadStateBytes(bytes, [&](StateReader& in) { Read(in); }); });
  }

  void Check() {
    const ObjectLock::Guard guard(lock_);
    replay().CheckValid();
  }

  void CheckLive(std::uint64_t id) {
    if (buffer().Contains(id)) return;
    throw Error(ErrorKind::kUsage, "there is no transition with id " + std::to_string(id) +
                                       ": the ids in memory are " +
                                       std::to_string(buffer().first_id()) + " to " +
                                       std::to_string(buffer().next_id()) + " (exclusive)");
  }

  const StepReplayOptions& options() const { return options_; }

 private:
  // The caller's arrays for a batch: fields, ids, probabilities, weights, masks, obs, next_obs; the
  // last three may be None.
  struct OutArrays {
    OutArrays(Memory& memory, const nb::tuple& out) {
      const std::size_t fields = memory.types_.size();
      if (out.size() != fields + 6) throw Error(ErrorKind::kUsage, "a batch of another memory");
      const ArrayView ids(out[fields], WholeBytes(out[fields]), true, "ids");
      const std::size_t n = ids.values<std::uint64_t>().size();
      for (std::size_t f = 0; f < fields; ++f) {
        pointers.push_back(Keep(out[f], n * memory.types_[f].bytes, memory.types_[f].text.c_str()));
      }
      sample.ids = {reinterpret_cast<std::uint64_t*>(Keep(out[fields], n * 8, "ids")), n};
      sample.probabilities = {
          reinterpret_cast<double*>(Keep(out[fields + 1], n * 8, "probabilities")), n};
      sample.weights = {reinterpret_cast<float*>(Keep(out[fields + 2], n * 4, "weights")), n};
      batch.masks = reinterpret_cast<std::uint64_t*>(Keep(out[fields + 3], n * 8, "masks"));
      if (memory.options_.replay.frames) {
        const auto& frames = *memory.options_.replay.frames;
        const std::size_t stack = n * frames.frame_bytes * frames.stack_depth;
        batch.s_tm1 = Keep(out[fields + 4], stack, "obs");
        batch.s_t = Keep(out[fields + 5], stack, "next_obs");
      }
      batch.fields = pointers;
    }
    OutArrays(const OutArrays&) = delete;
    OutArrays& operator=(const OutArrays&) = delete;

    static std::size_t WholeBytes(const nb::handle& array) {
      return nb::cast<std::size_t>(array.attr("nbytes"));
    }
    std::byte* Keep(const nb::handle& array, std::size_t count, const char* name) {
      if (array.is_none()) return nullptr;
      views.emplace_back(array, count, true, name);
      bytes += count;
      return views.back().data();
    }

    std::vector<ArrayView> views;
    std::vector<std::byte*> pointers;
    SampleView sample;
    FieldBatch batch;
    std::size_t bytes = 0;
  };

  struct Pointers {
    Pointers(const nb::tuple& arrays, const std::vector<std::size_t>& row_bytes, std::size_t n,
             const char* name) {
      if (arrays.size() != row_bytes.size()) {
        throw Error(ErrorKind::kUsage, std::string(name) + ": another number of arrays");
      }
      for (std::size_t i = 0; i < row_bytes.size(); ++i) {
        views.emplace_back(arrays[i], n * row_bytes[i], false, name);
        data.push_back(views.back().data());
      }
    }

    std::vector<ArrayView> views;
    std::vector<const std::byte*> data;
  };

  template <typename Function>
  static void Released(const Function& function) {
    const nb::gil_scoped_release release;
    function();
  }

  FrameStack CheckedStack(std::span<const std::uint64_t> ids) {
    const FrameStore& frames = replay().frames();
    FrameStack stack(ids.size());
    for (const std::uint64_t id : ids) {
      if (id != kZeroFrame && (id < frames.first_frame() || id >= frames.next_frame())) {
        throw Error(ErrorKind::kUsage, "there is no frame with id " + std::to_string(id));
      }
      stack.Push(id);
    }
    return stack;
  }

  std::vector<std::size_t> ObservationBytes() const {
    if (options_.replay.frames) {
      return {options_.replay.frames->frame_bytes * options_.replay.frames->stack_depth};
    }
    std::vector<std::size_t> bytes;
    for (const std::size_t field : options_.fields.observations) {
      bytes.push_back(types_[field].bytes);
    }
    return bytes;
  }

  // The environments of a step: an array of their numbers.
  std::vector<std::size_t> Environments(const nb::object& environments) {
    const std::optional<ArrayView> view = ExactArray(environments, "L", "Q");
    if (!view) throw Error(ErrorKind::kUsage, "env_ids must be whole numbers");
    std::vector<std::size_t> rows;
    std::vector<std::uint8_t> seen(options_.environments);
    for (const std::uint64_t environment : view->values<const std::uint64_t>()) {
      if (environment >= options_.environments || seen[environment]++ != 0) {
        throw Error(ErrorKind::kUsage, "env_ids: " + std::to_string(environment) +
                                           " is named twice, or not below num_envs = " +
                                           std::to_string(options_.environments));
      }
      rows.push_back(environment);
    }
    return rows;
  }

  void Write(StateWriter& out, std::span<const std::byte> layout) {
    out.Block("layout", layout);
    folds_steps_ ? steps_->Save(out) : alone_->Save(out);
  }
  void Read(StateReader& in) {
    in.Block("layout", kMostLayoutBytes);
    folds_steps_ ? steps_->Load(in) : alone_->Load(in);
  }

  std::vector<FieldType> types_;
  StepReplayOptions options_;
  bool folds_steps_;
  std::unique_ptr<StepReplay> steps_;
  std::unique_ptr<FieldReplay> alone_;
  ObjectLock lock_;
};

struct Ended {};  // after the first block

nb::bytes LayoutOfFile(const std::string& path) {
  std::vector<std::byte> layout;
  try {
    ReadStateFile(path, [&](StateReader& in) {
      layout = in.Block("layout", kMostLayoutBytes);
      throw Ended{};
    });
  } catch (const Ended&) {
  }
  return nb::bytes(layout.data(), layout.size());
}

nb::bytes LayoutOfState(const nb::bytes& state) {
  std::vector<std::byte> layout;
  try {
    ReadStateBytes(BytesOf(state), [&](StateReader& in) {
      layout = in.Block("layout", kMostLayoutBytes);
      throw Ended{};
    });
  } catch (const Ended&) {
  }
  return nb::bytes(layout.data(), layout.size());
}

}  // namespace

ReplayBufferOptions BufferOptionsFrom(const nb::dict& options) {
  const auto number = [&](const char* key) { return nb::cast<double>(options[key]); };
  return {.capacity = nb::cast<std::size_t>(options["capacity"]),
          .selector = static_cast<SelectorKind>(nb::cast<int>(options["selector"])),
          .selection = {.priority_exponent = number("priority_exponent"),
                        .uniform_mix = number("uniform_mix"),
                        .stratified = nb::cast<bool>(options["stratified"]),
                        .recency_half_life = number("recency")},
          .initial_priority = number("initial_priority"),
          .largest_priority_decay = number("largest_priority_decay")};
}

namespace {

StepReplayOptions OptionsFrom(const nb::dict& options) {
  StepReplayOptions result;
  result.replay.replay.buffer = BufferOptionsFrom(options);
  result.replay.replay.masks = {.members = nb::cast<std::size_t>(options["members"]),
                                .probability = nb::cast<double>(options["mask_probability"])};
  result.replay.keep_components = nb::cast<bool>(options["keep_components"]);
  if (options.contains("frame_bytes")) {
    result.replay.frames =
        FrameStoreOptions{.capacity = result.replay.replay.buffer.capacity,
                          .frame_bytes = nb::cast<std::size_t>(options["frame_bytes"]),
                          .stack_depth = nb::cast<std::size_t>(options["stack"]),
                          .frame_capacity = nb::cast<std::size_t>(options["frame_capacity"])};
  }
  if (options.contains("steps")) {
    const auto indices = [&](const char* key) {
      return nb::cast<std::vector<std::size_t>>(options[key]);
    };
    result.fields = {.observations = indices("observations"),
                     .next_observations = indices("next_observations"),
                     .steps = indices("steps"),
                     .reward = nb::cast<std::size_t>(options["reward"]),
                     .discount = nb::cast<std::size_t>(options["discount_field"])};
    result.environments = nb::cast<std::size_t>(options["num_envs"]);
    result.n_steps = nb::cast<std::size_t>(options["n_step"]);
    result.discount = nb::cast<double>(options["discount"]);
  }
  return result;
}

}  // namespace

void BindReplay(nb::module_& module) {
  module.def("layout_of_file", &LayoutOfFile);
  module.def("layout_of_state", &LayoutOfState);
  nb::class_<Memory> memory(module, "Memory");
  memory
      .def("__init__",
           [](Memory* self, const nb::list& fields, const nb::dict& options, std::uint64_t seed) {
             new (self) Memory(fields, OptionsFrom(options), options.contains("steps"), seed);
           })
      .def("add", &Memory::Add, nb::arg("arrays"), nb::arg("priorities").none())
      .def("set_components", &Memory::SetComponents)
      .def("derive_priorities", &Memory::Derive)
      .def("read_components", &Memory::ReadComponents)
      .def("add_frame", &Memory::AddFrame)
      .def("add_stacks", &Memory::AddStacks, nb::arg("arrays"), nb::arg("priorities").none(),
           nb::arg("stacks"))
      .def("sample", &Memory::Sample)
      .def("gather", &Memory::Gather)
      .def("set_priorities", &Memory::SetPriorities)
      .def("reset", &Memory::Reset)
      .def("step", &Memory::Step, nb::arg("environments"), nb::arg("steps"), nb::arg("rewards"),
           nb::arg("observations"), nb::arg("terminated"), nb::arg("truncated"),
           nb::arg("final_observations").none(), nb::arg("autoreset"))
      .def("save", &Memory::Save)
      .def("state", &Memory::State)
      .def("load", &Memory::Load)
      .def("restore", &Memory::Restore)
      .def("check", &Memory::Check)
      .def("__len__",
           [](Memory& self) {
             const ObjectLock::Guard guard(self.lock());
             return self.replay().size();
           })
      .def("frames_stored",
           [](Memory& self) {
             const ObjectLock::Guard guard(self.lock());
             self.frame_options();  // there are some
             const FrameStore& frames = self.replay().frames();
             return frames.next_frame() - frames.first_frame();
           })
      .def("memory_bytes", [](Memory& self) { return self.options().replay.MemoryBytes(); });
  BindBufferParts(memory, [](Memory& self) -> ReplayBuffer& { return self.buffer(); });
}

}  // namespace uper::python
