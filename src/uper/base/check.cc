#include "uper/base/check.h"

#include <string>

namespace uper {

void FailCheck(const char* file, int line, const char* condition, std::string_view message) {
  throw Error(ErrorKind::kInternal, std::string(file) + ":" + std::to_string(line) +
                                        ": check failed: " + condition + ": " +
                                        std::string(message));
}

}  // namespace uper
