#pragma once

namespace uper {

// Joins lambdas to one function object for std::visit: each handles the alternatives it accepts.
template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace uper
