#include "uper/replay/make_selector.h"

#include "uper/base/check.h"
#include "uper/replay/proportional_selector.h"
#include "uper/replay/rank_selector.h"
#include "uper/replay/remote_selector.h"
#include "uper/replay/uniform_selector.h"

namespace uper {

std::unique_ptr<Selector> MakeSelector(SelectorKind kind, std::size_t capacity,
                                       const SelectorOptions& options) {
  switch (kind) {
    case SelectorKind::kProportional:
      return std::make_unique<ProportionalSelector>(capacity, options);
    case SelectorKind::kRank:
      return std::make_unique<RankSelector>(capacity, options);
    case SelectorKind::kUniform:
      return std::make_unique<UniformSelector>(capacity, options);
    case SelectorKind::kRemote:
      return std::make_unique<RemoteSelector>(capacity, options);
  }
  UPER_CHECK(false, "unknown kind of selector");
  return nullptr;
}

}  // namespace uper
