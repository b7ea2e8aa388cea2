#include "uper/engine/update_report.h"

namespace uper {

void ThrowWithBatch(ErrorKind kind, const std::string& message,
                    std::span<const std::uint64_t> ids) {
  std::string text = message + "; transitions of the batch:";
  for (const std::uint64_t id : ids) text.append(" ").append(std::to_string(id));
  throw Error(kind, text);
}

}  // namespace uper
