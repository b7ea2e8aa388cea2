#include "uper/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "uper/base/check.h"
#include "uper/checkpoint/bounded_json.h"

namespace uper::checkpoint {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the data is copied as it is");

struct ElementInfo {
  TensorElement element;
  const char* name;
  std::size_t bytes;
};

constexpr ElementInfo kElements[] = {
    {TensorElement::kFloat64, "F64", 8}, {TensorElement::kFloat32, "F32", 4},
    {TensorElement::kFloat16, "F16", 2}, {TensorElement::kBfloat16, "BF16", 2},
    {TensorElement::kInt64, "I64", 8},   {TensorElement::kInt32, "I32", 4},
    {TensorElement::kInt16, "I16", 2},   {TensorElement::kInt8, "I8", 1},
    {TensorElement::kUint64, "U64", 8},  {TensorElement::kUint32, "U32", 4},
    {TensorElement::kUint16, "U16", 2},  {TensorElement::kUint8, "U8", 1},
    {TensorElement::kBool, "BOOL", 1},
};

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxNameBytes = 200;
constexpr const char* kMetadata = "__metadata__";

const ElementInfo& InfoOf(TensorElement element) {
  return *std::find_if(std::begin(kElements), std::end(kElements),
                       [&](const ElementInfo& info) { return info.element == element; });
}

bool IsValidName(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name != kMetadata &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == ':' || c == '-';
         });
}

// Bytes of a tensor, or nothing if that does not fit into 64 bits.
std::optional<std::uint64_t> BytesOfShape(const std::vector<std::uint64_t>& shape,
                                          std::size_t element_bytes) {
  std::uint64_t bytes = element_bytes;
  bool empty = false;
  for (const std::uint64_t size : shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, std::max<std::uint64_t>(size, 1), &bytes)) return {};
  }
  return empty ? 0 : bytes;
}

// Reads one file; every Fail names it.
class Parser {
 public:
  Parser(std::span<const std::byte> file, const std::string& what) : file_(file), what_(what) {}

  TensorMap Parse() {
    const json header = ReadHeader();
    TensorMap tensors;
    for (const auto& [name, entry] : header.items()) {
      if (name == kMetadata) continue;
      if (!IsValidName(name)) Fail("a tensor's name is not valid");
      if (tensors.size() == kMaxTensors) Fail("there are too many tensors");
      tensors.emplace(name, ReadEntry(name, entry));
    }
    CheckTiling();
    return tensors;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw Error(ErrorKind::kCorrupt, what_ + ": " + reason);
  }

  json ReadHeader() {
    if (file_.size() < kLengthBytes) Fail("too short for a safetensors file");
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), kLengthBytes);
    if (length > kMaxTensorHeaderBytes) Fail("the header is too long");
    if (length > file_.size() - kLengthBytes) Fail("the header is cut off");
    const std::string_view text(reinterpret_cast<const char*>(file_.data()) + kLengthBytes, length);
    data_ = file_.subspan(kLengthBytes + length);
    const json header =
        ParseJson(text, {.bytes = kMaxTensorHeaderBytes, .values = 20 * kMaxTensors, .depth = 3},
                  what_ + ": the header");
    if (!header.is_object()) Fail("the header is not an object");
    return header;
  }

  StoredTensor ReadEntry(const std::string& name, const json& entry) {
    const std::string where = what_ + ": tensor '" + name + "'";
    StoredTensor tensor{
        .element = ReadElement(JsonMember<std::string>(entry, "dtype", where)),
        .shape = ReadNumbers(JsonMember<json>(entry, "shape", where), kMaxTensorRank)};
    const auto offsets = ReadNumbers(JsonMember<json>(entry, "data_offsets", where), 2);
    if (entry.size() != 3 || offsets.size() != 2) Fail("tensor '" + name + "' is malformed");
    const auto bytes = BytesOfShape(tensor.shape, ElementBytes(tensor.element));
    const auto [begin, end] = std::pair(offsets[0], offsets[1]);
    if (begin > end || end > data_.size() || !bytes || end - begin != *bytes) {
      Fail("tensor '" + name + "' does not fit its place in the file");
    }
    tensor.bytes = data_.subspan(begin, end - begin);
    ranges_.emplace_back(begin, end);
    return tensor;
  }

  TensorElement ReadElement(const std::string& name) const {
    for (const ElementInfo& info : kElements) {
      if (name == info.name) return info.element;
    }
    Fail("unknown element type");
  }

  std::vector<std::uint64_t> ReadNumbers(const json& array, std::size_t most) const {
    if (!array.is_array() || array.size() > most) Fail("a shape or range is malformed");
    std::vector<std::uint64_t> numbers;
    for (const json& number : array) {
      if (!number.is_number_unsigned()) Fail("a shape or range is malformed");
      numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
  }

  void CheckTiling() {
    std::sort(ranges_.begin(), ranges_.end());
    std::uint64_t covered = 0;
    for (const auto& [begin, end] : ranges_) {
      if (begin != covered) Fail("tensors overlap or leave a gap");
      covered = end;
    }
    if (covered != data_.size()) Fail("bytes behind the last tensor");
  }

  std::span<const std::byte> file_;
  const std::string& what_;
  std::span<const std::byte> data_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
};

// Wide elements first, then by name.
std::vector<TensorMap::const_iterator> LayoutOrder(const TensorMap& tensors) {
  std::vector<TensorMap::const_iterator> order;
  for (auto tensor = tensors.begin(); tensor != tensors.end(); ++tensor) order.push_back(tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return ElementBytes(a->second.element) > ElementBytes(b->second.element);
  });
  return order;
}

}  // namespace

std::size_t ElementBytes(TensorElement element) { return InfoOf(element).bytes; }
const char* ElementName(TensorElement element) { return InfoOf(element).name; }

std::vector<std::byte> EncodeSafetensors(const TensorMap& tensors) {
  std::vector<std::byte> file;
  EncodeSafetensors(tensors, file);
  return file;
}

void EncodeSafetensors(const TensorMap& tensors, std::vector<std::byte>& file) {
  UPER_CHECK(tensors.size() <= kMaxTensors, "too many tensors for one file");
  const auto order = LayoutOrder(tensors);
  json header = json::object();
  std::uint64_t offset = 0;
  for (const auto& entry : order) {
    const auto& [name, tensor] = *entry;
    UPER_CHECK(IsValidName(name), "tensor name '" + name + "'");
    UPER_CHECK(tensor.shape.size() <= kMaxTensorRank &&
                   BytesOfShape(tensor.shape, ElementBytes(tensor.element)) == tensor.bytes.size(),
               "shape of tensor '" + name + "'");
    header[name] = {{"dtype", ElementName(tensor.element)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // so that the data starts aligned
  UPER_CHECK(text.size() <= kMaxTensorHeaderBytes, "the header of a tensor file is too long");

  file.resize(kLengthBytes + text.size() + offset);
  const std::uint64_t length = text.size();
  std::memcpy(file.data(), &length, kLengthBytes);
  std::memcpy(file.data() + kLengthBytes, text.data(), text.size());
  std::byte* place = file.data() + kLengthBytes + text.size();
  for (const auto& entry : order) {
    const std::span<const std::byte> bytes = entry->second.bytes;
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
    place += bytes.size();
  }
}

TensorMap ParseSafetensors(std::span<const std::byte> file, const std::string& what) {
  return Parser(file, what).Parse();
}

const StoredTensor& FindTensor(const TensorMap& tensors, const std::string& name,
                               TensorElement element) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw Error(ErrorKind::kCorrupt, "stored tensor '" + name + "' is missing");
  }
  if (found->second.element != element) {
    throw Error(ErrorKind::kCorrupt, "stored tensor '" + name + "' has elements of type " +
                                         ElementName(found->second.element) + ", not " +
                                         ElementName(element));
  }
  return found->second;
}

}  // namespace uper::checkpoint
