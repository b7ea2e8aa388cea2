#pragma once

#include <stdexcept>
#include <string>

namespace uper {

// The kind of failure, as far as a caller can act on it. The program maps each kind to an exit code
// (uper/cli/exit_code.h); library code only throws.
enum class ErrorKind {
  kInternal,     // a broken contract or an unexpected failure
  kUsage,        // a bad argument, key, value or path given by the user
  kMissingData,  // a file or folder that should be there is not
  kResources,    // memory or disk
  kCorrupt,      // stored state that does not verify
  kNumeric,      // a loss, gradient or estimate that is not finite
  kInterrupted,  // the user asked to stop
};

// The one exception type of the library. The message says what, where, and what to do.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace uper
