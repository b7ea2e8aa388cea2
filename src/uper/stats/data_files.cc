#include "uper/stats/data_files.h"

#include <string>

#include "uper/base/check.h"

namespace uper {

std::string_view DataFileText(std::string_view name) {
  for (const EmbeddedFile& file : DataFiles()) {
    if (file.path == name) return file.text;
  }
  FailCheck(__FILE__, __LINE__, "data file exists", std::string(name));
}

}  // namespace uper
