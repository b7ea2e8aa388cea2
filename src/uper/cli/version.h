#pragma once

#include <string>

namespace uper::cli {

std::string ProgramVersion();   // "0.2.0"
std::string ProgramRevision();  // git revision, with "-dirty" if files were changed
}  // namespace uper::cli
