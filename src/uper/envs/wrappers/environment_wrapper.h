#pragma once

#include <memory>
#include <utility>

#include "uper/base/check.h"
#include "uper/envs/environment.h"

namespace uper {

// Base of environments that change the behavior of another one, which they own. By default every
// call goes to the inner environment. A wrapper overrides the methods that it changes and saves its
// own state after the inner one.
class EnvironmentWrapper : public Environment {
 public:
  explicit EnvironmentWrapper(std::unique_ptr<Environment> inner) : inner_(std::move(inner)) {
    UPER_CHECK(inner_ != nullptr, "a wrapper needs an environment");
  }

  const EnvironmentSpec& spec() const override { return inner_->spec(); }
  bool Render(Picture& picture) const override { return inner_->Render(picture); }

 protected:
  Environment& inner() { return *inner_; }

  void DoReset(std::span<std::byte> observation) override { inner_->Reset(observation); }
  TimeStep DoStep(int action, std::span<std::byte> observation) override {
    return inner_->Step(action, observation);
  }
  void DoSaveState(ByteWriter& writer) const override { writer.WriteBlock(inner_->SaveState()); }
  void DoRestoreState(ByteReader& reader) override { inner_->RestoreState(reader.ReadBlock()); }

 private:
  std::unique_ptr<Environment> inner_;
};

}  // namespace uper
