#pragma once

#include <filesystem>
#include <string>

namespace uper {

// Keeps a second process out of a run folder for as long as this object lives. The lock is the
// kernel's (flock), so it ends with the process however that ends; the file stays and says who
// holds it or held it last (process, host, boot). Where flock is not supported the file's content
// decides: a holder of this boot of this host counts while its process exists, one of another host
// always.
class RunLock {
 public:
  // Creates the file if need be. Throws Error(kResources) naming the holder if the lock is taken,
  // Error(kUsage) if the file cannot be written.
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

// Who holds a lock, as its file says. Empty fields: not known.
struct LockHolder {
  long process = 0;
  std::string host;
  std::string boot;
};

// Of this process.
LockHolder ThisHolder();
std::string EncodeHolder(const LockHolder& holder);
LockHolder ParseHolder(const std::string& text);
// Does the process still run, as far as can be told from here?
bool MayBeAlive(const LockHolder& holder);

}  // namespace uper
