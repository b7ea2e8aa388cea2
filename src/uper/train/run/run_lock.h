#pragma once

#include <filesystem>
#include <string>

namespace uper {

// Keeps a second process out of a run folder while this object lives. It is a kernel lock (flock),
// so it ends with the process, however that ends. The file stays and names the current or last
// holder (process, host, boot). Without support for flock the file's content decides: a holder on
// this boot of this host counts while its process exists; a holder on another host always counts.
class RunLock {
 public:
  // Creates the file if it does not exist. Throws Error(kResources) naming the holder if the lock
  // is taken, Error(kUsage) if the file cannot be written.
  explicit RunLock(std::filesystem::path path);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  void Acquire();
  void WriteHolder() const;

  const std::filesystem::path path_;
  int descriptor_ = -1;
};

// The holder of a lock, from its file. Empty fields are unknown.
struct LockHolder {
  long process = 0;
  std::string host;
  std::string boot;
};

// This process as a holder.
LockHolder ThisHolder();
std::string EncodeHolder(const LockHolder& holder);
LockHolder ParseHolder(const std::string& text);
// True if the process may still run, as far as this host can tell.
bool MayBeAlive(const LockHolder& holder);

}  // namespace uper
