#include "uper/checkpoint/bounded_json.h"

#include <cstdint>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "uper/base/error.h"

namespace uper::checkpoint {
namespace {

using nlohmann::json;

// Walks over the text without building anything and stops at the first breach of a limit.
class LimitChecker : public nlohmann::json_sax<json> {
 public:
  explicit LimitChecker(const JsonLimits& limits) : limits_(limits) {}

  const std::string& problem() const { return problem_; }

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) return Refuse("names the key '" + name + "' twice");
    return Count();
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Refuse("is not JSON (at byte " + std::to_string(position) + ")");
  }

 private:
  bool Refuse(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool Count() { return ++values_ <= limits_.values || Refuse("holds too many values"); }
  bool Open() {
    keys_.emplace_back();
    return keys_.size() <= limits_.depth ? Count() : Refuse("is nested too deeply");
  }
  bool Close() {
    keys_.pop_back();
    return true;
  }

  JsonLimits limits_;
  std::size_t values_ = 0;
  std::vector<std::set<std::string>> keys_;  // of each open object; empty for arrays
  std::string problem_;
};

}  // namespace

json ParseJson(std::string_view text, const JsonLimits& limits, const std::string& what) {
  const auto refuse = [&](const std::string& problem) {
    return Error(ErrorKind::kCorrupt, what + " " + problem);
  };
  if (text.size() > limits.bytes) throw refuse("is too long");
  LimitChecker checker(limits);
  if (!json::sax_parse(text.begin(), text.end(), &checker)) throw refuse(checker.problem());
  return json::parse(text.begin(), text.end());
}

json ReadJsonFile(const std::filesystem::path& path, const JsonLimits& limits) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) throw Error(ErrorKind::kMissingData, "cannot read " + path.string());
  if (bytes > limits.bytes) throw Error(ErrorKind::kCorrupt, path.string() + " is too long");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return ParseJson(text, limits, path.string());
}

namespace {

template <typename T>
bool HasType(const json& value) {
  if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
  if constexpr (std::is_same_v<T, std::string>) return value.is_string();
  if constexpr (std::is_same_v<T, double>) return value.is_number();
  if constexpr (std::is_same_v<T, std::uint64_t>) return value.is_number_unsigned();
  if constexpr (std::is_same_v<T, std::int64_t>) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  }
  return true;  // T is json: every value has this type
}

}  // namespace

template <typename T>
T JsonMember(const json& object, const char* key, const std::string& what) {
  const bool present = object.is_object() && object.contains(key);
  if (!present || !HasType<T>(object[key])) {
    throw Error(ErrorKind::kCorrupt, what + " has no proper '" + key + "'");
  }
  return object[key].get<T>();
}

template bool JsonMember(const json&, const char*, const std::string&);
template std::string JsonMember(const json&, const char*, const std::string&);
template double JsonMember(const json&, const char*, const std::string&);
template std::uint64_t JsonMember(const json&, const char*, const std::string&);
template std::int64_t JsonMember(const json&, const char*, const std::string&);
template json JsonMember(const json&, const char*, const std::string&);

}  // namespace uper::checkpoint
