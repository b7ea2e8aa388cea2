#pragma once

#include <string_view>

#include "uper/base/error.h"

namespace uper {

[[noreturn]] void FailCheck(const char* file, int line, const char* condition,
                            std::string_view message);

}  // namespace uper

// A contract that holds in every build; a violation throws Error(kInternal). The message is only
// evaluated on failure.
#define UPER_CHECK(condition, message)                              \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::uper::FailCheck(__FILE__, __LINE__, #condition, (message)); \
    }                                                               \
  } while (false)

// For inner loops that a benchmark showed to be hot: checked in debug builds only.
#ifdef NDEBUG
#define UPER_DCHECK(condition, message) \
  do {                                  \
  } while (false)
#else
#define UPER_DCHECK(condition, message) UPER_CHECK(condition, message)
#endif
