#pragma once

#include <string>

namespace uper {

std::string ProgramVersion();   // as in "0.2.0"
std::string ProgramRevision();  // of git, with "-dirty" if files were changed
}  // namespace uper
