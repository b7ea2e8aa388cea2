#include "uper/replay/selectors/mirror_selector.h"

#include "uper/base/error.h"

namespace uper {
namespace {

[[noreturn]] void Refuse() {
  throw Error(ErrorKind::kInternal, "this memory's probabilities are not on the host");
}

}  // namespace

double MirrorSelector::Mass(std::size_t) const { Refuse(); }
void MirrorSelector::Find(std::span<const double>, std::span<std::uint32_t>,
                          std::span<double>) const {
  Refuse();
}
double MirrorSelector::SmallestMass() { Refuse(); }

}  // namespace uper
