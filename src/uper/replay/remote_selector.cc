#include "uper/replay/remote_selector.h"

#include "uper/base/error.h"

namespace uper {
namespace {

[[noreturn]] void Refuse() {
  throw Error(ErrorKind::kInternal, "this memory's probabilities are not on the host");
}

}  // namespace

double RemoteSelector::Mass(std::size_t) const { Refuse(); }
void RemoteSelector::Find(std::span<const double>, std::span<std::uint32_t>,
                          std::span<double>) const {
  Refuse();
}
double RemoteSelector::SmallestMass() { Refuse(); }

}  // namespace uper
