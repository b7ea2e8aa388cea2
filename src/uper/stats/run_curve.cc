#include "uper/stats/run_curve.h"

namespace uper {

std::string SuiteOf(const std::string& env) { return env.substr(0, env.find('/')); }

std::string GameOf(const std::string& env) { return env.substr(env.find('/') + 1); }

}  // namespace uper
