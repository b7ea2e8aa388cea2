#pragma once

#include <cstddef>
#include <memory>

#include "uper/replay/selectors/selector.h"

namespace uper {

enum class SelectorKind {
  kProportional,  // by priority^exponent
  kRank,          // by rank^-exponent
  kUniform,       // priorities are kept but ignored
  kMirror,        // a device draws; not for configurations
};

std::unique_ptr<Selector> MakeSelector(SelectorKind kind, std::size_t capacity,
                                       const SelectorOptions& options);

}  // namespace uper
