#pragma once

namespace uper {

// `total` / `piece`, rounded up. REQUIRES: total >= 0, piece > 0.
template <typename Integer>
constexpr Integer CeilDiv(Integer total, Integer piece) {
  return (total + piece - 1) / piece;
}

}  // namespace uper
