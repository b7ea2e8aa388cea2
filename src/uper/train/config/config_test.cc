#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "uper/base/did_you_mean.h"
#include "uper/base/files/files_for_tests.h"
#include "uper/train/config/config_check.h"
#include "uper/train/config/config_fields.h"
#include "uper/train/config/config_io.h"

namespace uper {
namespace {

// Another value that the field accepts.
std::string OtherValue(const ConfigField& field) {
  if (const auto* flag = std::get_if<bool*>(&field.target)) return **flag ? "false" : "true";
  if (std::holds_alternative<std::string*>(field.target)) return "another";
  if (const auto* choice = std::get_if<ChoiceAccess>(&field.target)) {
    return choice->names[(choice->get() + 1) % choice->names.size()];
  }
  const double number = std::stod(field.ValueText());
  const bool integer = !std::holds_alternative<double*>(field.target);
  const double other = field.range.Contains(number + 1) ? number + 1 : number * 0.5;
  return integer ? std::to_string(static_cast<std::int64_t>(other)) : std::to_string(other);
}

TEST(ConfigTest, KeysAreDistinctAndDocumented) {
  RunConfig config;
  std::set<std::string> keys;
  for (const ConfigField& field : ConfigFields(config)) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_TRUE(field.doc.ends_with('.') || field.doc.ends_with("...")) << field.key;
  }
  EXPECT_GE(keys.size(), 75u);
}

TEST(ConfigTest, DefaultsLieInTheirRangesAndRoundTripAsText) {
  RunConfig config;
  for (const ConfigField& field : ConfigFields(config)) {
    const std::string before = field.ValueText();
    field.AssignText(before, "test");
    EXPECT_EQ(field.ValueText(), before) << field.key;
  }
}

TEST(ConfigTest, DumpReadsBackAsTheSameConfiguration) {
  RunConfig config;
  for (const ConfigField& field : ConfigFields(config)) {
    field.AssignText(OtherValue(field), "test");
  }
  EXPECT_EQ(DifferingKeys(config, RunConfig{}).size(), ConfigKeyNames().size());
  RunConfig read;
  ApplyToml(read, DumpToml(config), "dump");
  EXPECT_TRUE(DifferingKeys(config, read).empty());
  EXPECT_EQ(DumpToml(read), DumpToml(config));
}

TEST(ConfigTest, DumpHoldsEveryKeyWithItsDocumentation) {
  const std::vector<TomlEntry> entries = ReadToml(DumpToml({}), "dump");
  const std::vector<std::string> keys = ConfigKeyNames();
  ASSERT_EQ(entries.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(entries[i].key, keys[i]);
  EXPECT_NE(DumpToml({}).find("# Seed of every random stream of the run.\nseed = 1\n"),
            std::string::npos);
  std::istringstream lines(DumpToml({}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(ConfigTest, TextsWithQuotesAndBackslashesSurvive) {
  RunConfig config;
  config.environment.name = "a\\\"b";
  RunConfig read;
  ApplyToml(read, DumpToml(config), "dump");
  EXPECT_EQ(read.environment.name, "a\\\"b");
}

TEST(ConfigTest, NumbersMayBeWrittenInManyWays) {
  RunConfig config;
  for (const char* text : {"1_000_000", "1000000", "1e6", "1.0e6", "+1000000", "1_000e3"}) {
    config.frames = 7;
    SetKey(config, "frames", text, "--set");
    EXPECT_EQ(config.frames, 1'000'000) << text;
  }
  for (const char* text : {"frames = 1_000_000", "frames = 1e6", "frames = 1000000.0"}) {
    config.frames = 7;
    ApplyToml(config, text, "t");
    EXPECT_EQ(config.frames, 1'000'000) << text;
  }
  for (const char* text : {"1.5", "1__0", "_10", "10_", "", " 10", "10 ", "ten", "0x10", "true",
                           "1e400", "9223372036854775808", "-1", "0", "nan", "inf", "+-5", "++5"}) {
    const Thrown thrown = Catch([&] { SetKey(config, "frames", text, "--set"); });
    EXPECT_EQ(thrown.kind, ErrorKind::kUsage) << text;
    EXPECT_EQ(config.frames, 1'000'000);
  }
}

TEST(ConfigTest, RangesAreEnforcedAtBothEndsOfEveryNumber) {
  RunConfig config;
  for (const ConfigField& field : ConfigFields(config)) {
    const bool real = std::holds_alternative<double*>(field.target);
    const bool integer = std::holds_alternative<int*>(field.target) ||
                         std::holds_alternative<std::int64_t*>(field.target);
    if (!real && !integer) continue;
    const NumberRange range = field.range;
    EXPECT_NO_THROW(field.Assign(range.high, "t")) << field.key;
    EXPECT_EQ(std::stod(field.ValueText()), range.high) << field.key;
    const double step = integer ? 1 : 1e-6 * std::max(1.0, std::abs(range.high));
    EXPECT_THROW(field.Assign(range.high + 2 * step, "t"), Error) << field.key;
    EXPECT_THROW(field.Assign(range.low - step, "t"), Error) << field.key;
    if (range.open_low) {
      EXPECT_THROW(field.Assign(range.low, "t"), Error) << field.key;
    } else {
      EXPECT_NO_THROW(field.Assign(range.low, "t")) << field.key;
    }
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      EXPECT_THROW(field.Assign(bad, "t"), Error) << field.key;
    }
  }
}

// The field behind a number; nullptr for other types.
const void* NumberBehind(const ConfigField& field) {
  if (const auto* number = std::get_if<int*>(&field.target)) return *number;
  if (const auto* number = std::get_if<std::int64_t*>(&field.target)) return *number;
  if (const auto* number = std::get_if<double*>(&field.target)) return *number;
  return nullptr;
}

TEST(ConfigTest, EveryNumberOfTheEnvironmentHasTheRangeOfItsField) {
  RunConfig config;
  std::map<std::string, ConfigField> numbers;
  for (const ConfigField& field : ConfigFields(config)) {
    const bool is_option = field.key.starts_with("environment.");
    if (is_option && NumberBehind(field) != nullptr) numbers[field.key] = field;
  }
  EXPECT_EQ(numbers.size(), std::size(kOptionRanges));
  for (const OptionRange& option : kOptionRanges) {
    const ConfigField& field = numbers["environment." + std::string(option.name)];
    const auto behind = [&](auto member) -> const void* {
      return &(config.environment.options.*member);
    };
    EXPECT_EQ(NumberBehind(field), std::visit(behind, option.field)) << option.name;
    EXPECT_EQ(field.range.low, option.minus_one.empty() ? option.low : -1) << option.name;
    EXPECT_EQ(field.range.high, option.high) << option.name;
  }
}

TEST(ConfigTest, WrongTypesAreRefusedForEveryKey) {
  RunConfig config;
  for (const ConfigField& field : ConfigFields(config)) {
    std::vector<std::string> wrong = {"[1]", "1979-05-27", "{a = 1}"};
    const bool text = std::holds_alternative<std::string*>(field.target) ||
                      std::holds_alternative<ChoiceAccess>(field.target);
    if (text) wrong.insert(wrong.end(), {"1", "1.5"});
    if (text && field.key != "overlap_updates") wrong.emplace_back("true");
    if (!text) wrong.push_back("\"text\"");
    if (std::holds_alternative<bool*>(field.target)) wrong.insert(wrong.end(), {"1", "0.0"});
    if (!text && !std::holds_alternative<bool*>(field.target)) wrong.push_back("true");
    for (const std::string& value : wrong) {
      RunConfig changed;
      const Thrown thrown =
          Catch([&] { ApplyToml(changed, "\n\n" + field.key + " = " + value, "some/file.toml"); });
      EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
      EXPECT_TRUE(thrown.Says(field.key)) << thrown.message;
      EXPECT_TRUE(thrown.Says("some/file.toml:3: ")) << thrown.message;
      EXPECT_TRUE(DifferingKeys(changed, {}).empty());
    }
  }
}

TEST(ConfigTest, AChoiceMayBeAFlagToo) {
  RunConfig config;
  for (const auto& [toml, text, value] :
       {std::tuple{"true", "true", Overlap::kYes}, std::tuple{"\"false\"", "false", Overlap::kNo},
        std::tuple{"\"auto\"", "\"auto\"", Overlap::kAuto},
        std::tuple{"false", "false", Overlap::kNo}}) {
    ApplyToml(config, std::string("overlap_updates = ") + toml, "f");
    EXPECT_EQ(config.overlap_updates, value);
    EXPECT_NE(DumpToml(config).find(std::string("overlap_updates = ") + text + "\n"),
              std::string::npos);
  }
  SetKey(config, "overlap_updates", "true", "t");
  EXPECT_EQ(config.overlap_updates, Overlap::kYes);
}

TEST(ConfigTest, AnUnknownChoiceGetsTheNearest) {
  RunConfig config;
  const Thrown thrown =
      Catch([&] { ApplyToml(config, "[agent]\npriority = \"info_gain_detla\"", "f"); });
  EXPECT_TRUE(thrown.Says("f:2: agent.priority must be one of uniform, td, "));
  EXPECT_TRUE(thrown.Says("did you mean 'info_gain_delta'?")) << thrown.message;
}

TEST(ConfigTest, PrecisionIsPlainUnlessAskedFor) {
  RunConfig config;
  EXPECT_EQ(config.precision, Precision::kFp32);
  SetKey(config, "precision", "tf32x3", "--set");
  EXPECT_EQ(config.precision, Precision::kTf32x3);
  const Thrown thrown = Catch([&] { SetKey(config, "precision", "tf23", "--set"); });
  EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
  EXPECT_TRUE(thrown.Says("precision must be one of fp32, tf32, tf32x3")) << thrown.message;
}

TEST(ConfigTest, TomlErrorsNameTheLine) {
  RunConfig config;
  EXPECT_TRUE(Catch([&] { ApplyToml(config, "seed = 1\nframes = = 2\n", "f"); }).Says("f:2: "));
  EXPECT_TRUE(Catch([&] { ApplyToml(config, "seed = 1\nseed = 2\n", "f"); }).Says("f:2: "));
  EXPECT_TRUE(Catch([&] { ApplyToml(config, "\xff\xfe", "f"); }).Says("f:1: "));
  // Of several errors, the first one in the file is reported.
  EXPECT_TRUE(Catch([&] {
                ApplyToml(config, "[agent]\nhed = 1\n[zzz]\nb = 2", "f");
              }).Says("f:2: unknown key 'agent.hed' (did you mean 'agent.head'?)"));
  EXPECT_TRUE(Catch([&] {
                ApplyToml(config, "seed = 3\n[optimiser]\n", "f");
              }).Says("f:2: unknown key 'optimiser' (did you mean 'optimizer'?)"));
  EXPECT_NO_THROW(ApplyToml(config, "[optimizer]\n", "f"));
}

// All texts at distance one: a letter removed, two neighbors swapped, or a letter of the alphabet
// inserted or replacing another.
std::set<std::string> OneLetterTypos(const std::string& word, const std::string& alphabet) {
  std::set<std::string> typos;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    const std::string front = word.substr(0, i);
    const std::string back = word.substr(i);
    for (const char c : alphabet) {
      typos.insert(front + c + back);
      if (!back.empty()) typos.insert(front + c + back.substr(1));
    }
    if (!back.empty()) typos.insert(front + back.substr(1));
    if (back.size() >= 2) typos.insert(front + back[1] + back[0] + back.substr(2));
  }
  typos.erase(word);
  return typos;
}

TEST(ConfigTest, NoOneLetterTypoOfAKeyIsAKey) {
  const std::vector<std::string> keys = ConfigKeyNames();
  const std::set<std::string> known(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    for (const std::string& typo :
         OneLetterTypos(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")) {
      EXPECT_FALSE(known.contains(typo)) << key << " -> " << typo;
    }
  }
}

TEST(ConfigTest, EveryTypoIsRefusedAndTheKeyThatWasMeantIsNamed) {
  // A suggestion compares with every key, so only three letters are tried to save time.
  std::size_t candidates = 0;
  std::size_t typos = 0;
  std::size_t right = 0;
  RunConfig config;
  for (const ConfigField& field : ConfigFields(config)) {
    for (const std::string& typo : OneLetterTypos(field.key, "a_2")) {
      if (candidates++ % kStride != 0) continue;
      std::string value = field.ValueText();
      if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
      const Thrown thrown = Catch([&] { SetKey(config, typo, value, "--set"); });
      EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
      ++typos;
      right += thrown.Says("(did you mean '" + field.key + "'?)") ? 1 : 0;
    }
  }
  EXPECT_GE(candidates, 10000u);
  EXPECT_GE(static_cast<double>(right), 0.95 * static_cast<double>(typos))
      << right << " of " << typos;
  RecordProperty("typos", static_cast<int>(typos));
  RecordProperty("right", static_cast<int>(right));
}

TEST(ConfigTest, TyposInFilesAreRefusedLikewise) {
  std::size_t candidates = 0;
  for (const std::string& key : ConfigKeyNames()) {
    for (const std::string& typo : OneLetterTypos(key, "x")) {
      if (candidates++ % kStride != 0) continue;
      RunConfig config;
      EXPECT_THROW(ApplyToml(config, typo + " = 1", "f"), Error) << typo;
      EXPECT_TRUE(DifferingKeys(config, {}).empty());
    }
  }
  EXPECT_GE(candidates, 3000u);
}

TEST(ConfigTest, SettingsAreSplitAtTheFirstEqualsSign) {
  EXPECT_EQ(SplitSetting("a.b=c=d"), (std::pair<std::string, std::string>("a.b", "c=d")));
  EXPECT_EQ(SplitSetting("a="), (std::pair<std::string, std::string>("a", "")));
  for (const char* text : {"", "=", "=1", "key"}) {
    EXPECT_EQ(Catch([&] { SplitSetting(text); }).kind, ErrorKind::kUsage) << text;
  }
}

TEST(ConfigTest, DocumentationHasARowForEveryKey) {
  const std::string text = ConfigDocumentation();
  for (const std::string& key : ConfigKeyNames()) {
    EXPECT_NE(text.find("\n| `" + key + "` | "), std::string::npos) << key;
  }
  EXPECT_NE(text.find("| `agent.mask_probability` | a number above 0 to 1 | `0.5` | no | "),
            std::string::npos);
  EXPECT_NE(text.find("| `threads` | an integer from 0 to 1024 | `0` | yes | "), std::string::npos);
}

TEST(ConfigTest, OnlyHarmlessKeysMayDifferOnResume) {
  // Another device rounds differently, and the documentation says so. The ROMs of another folder
  // are the same, because the program checks their digests.
  const std::set<std::string> harmless = {"threads", "overlap_updates", "checkpoint_every_frames",
                                          "frames",  "device",          "environment.rom_dir"};
  RunConfig probe;
  for (const ConfigField& field : ConfigFields(probe)) {
    RunConfig requested;
    SetKey(requested, field.key, OtherValue(field), "t");  // frames becomes larger
    if (harmless.contains(field.key)) {
      const RunConfig continued = ConfigForResume({}, requested);
      EXPECT_EQ(DifferingKeys(continued, requested), std::vector<std::string>{});
    } else {
      const Thrown thrown = Catch([&] { ConfigForResume({}, requested); });
      EXPECT_EQ(thrown.kind, ErrorKind::kUsage);
      EXPECT_TRUE(thrown.Says(": " + field.key + " (the run has ")) << thrown.message;
    }
  }
  RunConfig fewer;
  fewer.frames = 10;
  EXPECT_TRUE(Catch([&] { ConfigForResume({}, fewer); }).Says("it may only be raised"));
}

TEST(ConfigTest, AllDifferencesAreNamedOnResume) {
  RunConfig requested;
  requested.seed = 2;
  requested.optimizer.learning_rate = 0.1;
  const Thrown thrown = Catch([&] { ConfigForResume({}, requested); });
  EXPECT_TRUE(thrown.Says("seed (the run has 1, asked for 2)")) << thrown.message;
  EXPECT_TRUE(thrown.Says("optimizer.learning_rate (the run has 5e-05, asked for 0.1)"));
}

TEST(ConfigTest, AutomaticKeysTakeTheStoredChoiceOnResume) {
  RunConfig stored;
  stored.device = DeviceChoice::kCpu;
  stored.network.torso = TorsoPreset::kMinAtar;
  stored.replay.importance_exponent_end_transitions = 123;
  RunConfig requested;  // device and torso have their automatic values
  requested.replay.importance_exponent_end_transitions = 0;
  EXPECT_TRUE(DifferingKeys(ConfigForResume(stored, requested), stored).empty());
  requested.network.torso = TorsoPreset::kMlp;
  EXPECT_TRUE(Catch([&] { ConfigForResume(stored, requested); }).Says("network.torso"));
}

TEST(ConfigTest, ARunMayMoveToAnotherDevice) {
  RunConfig stored, requested;
  stored.device = DeviceChoice::kCpu;
  requested.device = DeviceChoice::kCuda;
  EXPECT_EQ(ConfigForResume(stored, requested).device, DeviceChoice::kCuda);
}

// Converts to any field of an aggregate.
struct AnyField {
  template <typename T>
  operator T() const;  // never called
};

template <typename Struct, typename... Fields>
constexpr std::size_t FieldCount() {
  if constexpr (requires { Struct{Fields{}..., AnyField{}}; }) {
    return FieldCount<Struct, Fields..., AnyField>();
  } else {
    return sizeof...(Fields);
  }
}

// Every field of config.h and of the environment options needs a line in config_fields.cc.
TEST(ConfigTest, EveryFieldHasAKey) {
  std::map<std::string, std::size_t> keys;
  for (const std::string& key : ConfigKeyNames()) {
    const std::size_t dot = key.find('.');
    ++keys[dot == std::string::npos ? "" : key.substr(0, dot)];
  }
  const std::size_t tables = keys.size() - 1;
  EXPECT_EQ(tables, 6u);
  EXPECT_EQ(keys[""], FieldCount<RunConfig>() - tables);
  EXPECT_EQ(keys["environment"],
            FieldCount<EnvironmentConfig>() - 1 + FieldCount<EnvironmentOptions>());
  EXPECT_EQ(keys["network"], FieldCount<NetworkConfig>());
  EXPECT_EQ(keys["agent"], FieldCount<AgentConfig>());
  EXPECT_EQ(keys["optimizer"], FieldCount<OptimizerConfig>());
  EXPECT_EQ(keys["replay"], FieldCount<ReplayConfig>());
  EXPECT_EQ(keys["exploration"], FieldCount<ExplorationConfig>());
}

Priority DoubleTdError(const PriorityInputs& inputs, const PriorityLimits&) {
  return {.value = 2 * inputs.td_error};
}

TEST(ConfigTest, PrioritiesAreThoseThatNetworksCanUse) {
  std::vector<std::string> names;
  for (const auto& choice : ChoicesOf<PriorityRule>()) names.emplace_back(choice.name);
  std::vector<std::string> expected;
  for (const PriorityRule rule : AllPriorityRules()) {
    const bool simulations_only = rule == PriorityRule::kCounts || rule == PriorityRule::kOracle;
    if (!simulations_only) expected.emplace_back(PriorityRuleName(rule));
  }
  EXPECT_EQ(names, expected);
}

TEST(ConfigTest, ARegisteredPriorityHasItsNameInConfigurations) {
  const PriorityRule rule =
      RegisterPriorityRule({.name = "config_test_rule", .compute = &DoubleTdError});
  RunConfig config;
  SetKey(config, "agent.priority", "config_test_rule", "--set");
  EXPECT_EQ(config.agent.priority, rule);
  EXPECT_NE(DumpToml(config).find("\npriority = \"config_test_rule\"\n"), std::string::npos);
  config.device = DeviceChoice::kCpu;
  EXPECT_NO_THROW(CheckConfig(config));
  config.device = DeviceChoice::kAuto;
  EXPECT_NO_THROW(CheckConfig(config));
  config.device = DeviceChoice::kCuda;
  EXPECT_TRUE(Catch([&] { CheckConfig(config); }).Says("runs on the CPU only; set device to"));
  config.device = DeviceChoice::kAuto;
  config.precision = Precision::kTf32;
  EXPECT_TRUE(Catch([&] { CheckConfig(config); }).Says("runs on the CPU only; set precision to"));
}

TEST(ConfigTest, ARegisteredPriorityForSimulationsIsRefused) {
  RegisterPriorityRule(
      {.name = "config_test_truth", .needs = {.truth = true}, .compute = &DoubleTdError});
  RunConfig config;
  EXPECT_THROW(SetKey(config, "agent.priority", "config_test_truth", "--set"), Error);
}

}  // namespace
}  // namespace uper
