#include "uper/cli/version.h"

namespace uper::cli {

std::string ProgramVersion() { return UPER_VERSION; }

std::string ProgramRevision() { return UPER_REVISION; }

}  // namespace uper::cli
