#include "uper/replay/selectors/make_selector.h"

#include "uper/base/check.h"
#include "uper/replay/selectors/mirror_selector.h"
#include "uper/replay/selectors/proportional_selector.h"
#include "uper/replay/selectors/rank_selector.h"
#include "uper/replay/selectors/uniform_selector.h"

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
    case SelectorKind::kMirror:
      return std::make_unique<MirrorSelector>(capacity, options);
  }
  UPER_CHECK(false, "unknown kind of selector");
  return nullptr;
}

}  // namespace uper
