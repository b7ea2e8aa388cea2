#pragma once

#include <string>

namespace uper {

std::string ProgramVersion();   // "0.1.0"
std::string ProgramRevision();  // of git, with "-dirty" if files were changed
}  // namespace uper
