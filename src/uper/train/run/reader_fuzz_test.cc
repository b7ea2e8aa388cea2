#include <gtest/gtest.h>

#include "uper/base/replace_new_for_tests.h"
#include "uper/checkpoint/mutations_for_tests.h"
#include "uper/train/config/config_io.h"
#include "uper/train/run/run_lock.h"

namespace uper {
namespace {

TEST(ReaderFuzzTest, ConfigurationFile) {
  const int refused = checkpoint::Fuzz(DumpToml({}), [](const std::string& text) {
    RunConfig config;
    ApplyToml(config, text, "F");
  });
  EXPECT_GT(refused, checkpoint::kMutations / 5);  // much of the text is comments
}

TEST(ReaderFuzzTest, LockFile) {
  checkpoint::Fuzz(EncodeHolder(ThisHolder()),
                   [](const std::string& text) { MayBeAlive(ParseHolder(text)); });
}

}  // namespace
}  // namespace uper
