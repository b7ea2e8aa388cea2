#include "uper/cli/exit_code.h"

namespace uper::cli {

int ExitCodeFor(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInternal:
      return kExitFailure;
    case ErrorKind::kUsage:
      return kExitUsage;
    case ErrorKind::kMissingData:
      return kExitMissingData;
    case ErrorKind::kResources:
      return kExitResources;
    case ErrorKind::kCorrupt:
      return kExitCorrupt;
    case ErrorKind::kNumeric:
      return kExitNumeric;
    case ErrorKind::kInterrupted:
      return kExitInterrupted;
  }
  return kExitFailure;
}

}  // namespace uper::cli
