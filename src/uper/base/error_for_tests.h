#pragma once

// Helpers for tests that check errors.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "uper/base/error.h"

namespace uper {

// The kind and message of an Error.
struct Thrown {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;

  bool Says(const std::string& words) const { return message.find(words) != std::string::npos; }
};

// The Error that `function` throws. The test fails if it throws none.
inline Thrown Catch(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    return {.kind = error.kind(), .message = error.what()};
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

// The message of the usage error that `function` throws, or "accepted" if it throws nothing. The
// test fails for an Error of another kind.
inline std::string Refusal(const std::function<void()>& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage) << error.what();
    return error.what();
  }
  return "accepted";
}

}  // namespace uper
