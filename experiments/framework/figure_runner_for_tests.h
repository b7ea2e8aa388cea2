#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "experiments/framework/figure.h"

namespace uper::experiments {

// Runs a figure in a folder of its own, for tests. It has the claims and the bytes of every file
// that the figure wrote.
class FigureTestRunner {
 public:
  explicit FigureTestRunner(const std::string& name)
      : folder_(std::filesystem::temp_directory_path() /
                ("uper-" + name + "-" + std::to_string(Unique()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FigureTestRunner() { std::filesystem::remove_all(folder_); }
  FigureTestRunner(const FigureTestRunner&) = delete;
  FigureTestRunner& operator=(const FigureTestRunner&) = delete;

  std::vector<Claim> Run(const Figure& figure, int seeds, int jobs,
                         const std::map<std::string, std::string>& assigned) {
    const Settings settings(figure.settings, assigned);
    const StopFlag stop{false};
    return figure.run({.folder = folder_,
                       .seeds = seeds,
                       .jobs = jobs,
                       .settings = settings,
                       .progress = progress_,
                       .stop = stop});
  }

  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      std::ifstream file(entry.path(), std::ios::binary);
      files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
    }
    return files;
  }

  // Tasks announced minus tasks done.
  long open_tasks() const { return progress_.open; }

 private:
  struct CountingProgress : ProgressSink {
    void AddTasks(std::size_t tasks) override { open += static_cast<long>(tasks); }
    void TaskDone() override { --open; }
    void Warn(const std::string&) override {}
    std::atomic<long> open{0};
  };

  static long Unique() {
    static std::atomic<long> counter{0};
    return static_cast<long>(
               std::filesystem::file_time_type::clock::now().time_since_epoch().count()) +
           counter++;
  }

  const std::filesystem::path folder_;
  CountingProgress progress_;
};

// The claim of that id; throws std::out_of_range if there is none.
inline const Claim& FindClaim(const std::vector<Claim>& claims, const std::string& id) {
  for (const Claim& claim : claims) {
    if (claim.id == id) return claim;
  }
  throw std::out_of_range("no claim " + id);
}

}  // namespace uper::experiments
