#include "uper/checkpoint/checkpoint_verify.h"

#include <algorithm>
#include <map>

#include "uper/base/error.h"
#include "uper/checkpoint/checkpoint_reader.h"

namespace uper::checkpoint {
namespace {

// Collects one report per name; the worse state wins.
class Verifier {
 public:
  Verifier(const std::filesystem::path& folder, FileSystem& files)
      : folder_(folder), files_(files), names_(ListCheckpoints(files, folder)) {}

  VerifyReport Verify() {
    const std::vector<std::uint64_t> numbers = ManifestNumbers(names_);
    for (const std::uint64_t number : numbers) VerifyManifest(number, number == numbers.front());
    for (const std::string& name : names_) {
      if (name == kMarkerName) {
        VerifyMarker(!numbers.empty());
      } else if (!reports_.contains(name)) {
        Report(name, FileState::kUnreferenced, "belongs to no checkpoint");
      }
    }
    VerifyReport report;
    for (const auto& [name, entry] : reports_) report.files.push_back(entry);
    return report;
  }

 private:
  void VerifyManifest(std::uint64_t number, bool newest) {
    const std::string name = ManifestName(number);
    try {
      const Manifest manifest = ReadManifest(files_, folder_, name);
      Report(name, FileState::kGood, "");
      for (const ManifestFile& file : manifest.Files()) VerifyFile(file, name);
      if (newest) VerifyPrevious(manifest);
    } catch (const Error& error) {
      Report(name, FileState::kDamaged, error.what());
    }
  }

  // The newest manifest lists the others that were kept with it.
  void VerifyPrevious(const Manifest& manifest) {
    for (const std::uint64_t number : manifest.previous) {
      const std::string name = ManifestName(number);
      if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
        Report(name, FileState::kMissing,
               "is missing, or one newer than " + ManifestName(manifest.number) + " was removed");
      }
    }
  }

  void VerifyFile(const ManifestFile& file, const std::string& manifest) {
    const auto known = checked_.find(file.name);
    if (known != checked_.end() && known->second == file) return;
    checked_[file.name] = file;
    if (std::find(names_.begin(), names_.end(), file.name) == names_.end()) {
      Report(file.name, FileState::kMissing, "is missing; " + manifest + " needs it");
      return;
    }
    try {
      ReadVerified(files_, folder_, file);
      Report(file.name, FileState::kGood, "");
    } catch (const Error& error) {
      Report(file.name, FileState::kDamaged, error.what());
    }
  }

  void VerifyMarker(bool has_manifests) {
    std::vector<std::byte> bytes;
    const std::string text = kMarkerText;
    const bool good =
        files_.Read(folder_ / kMarkerName, text.size(), &bytes) == 0 && TextOfBytes(bytes) == text;
    Report(kMarkerName, good ? FileState::kGood : FileState::kDamaged,
           good ? "" : "is damaged: its content is not the expected line");
    if (!has_manifests) Report(ManifestName(0), FileState::kMissing, "every manifest is missing");
  }

  void Report(const std::string& name, FileState state, const std::string& reason) {
    FileReport& report = reports_[name];
    if (!report.name.empty() && report.state != FileState::kGood) return;
    report = {.name = name, .state = state, .reason = reason};
    files_.Size(folder_ / name, &report.bytes);
  }

  const std::filesystem::path& folder_;
  FileSystem& files_;
  const std::vector<std::string> names_;
  std::map<std::string, FileReport> reports_;
  std::map<std::string, ManifestFile> checked_;
};

}  // namespace

bool VerifyReport::good() const {
  return std::none_of(files.begin(), files.end(), [](const FileReport& file) {
    return file.state == FileState::kDamaged || file.state == FileState::kMissing;
  });
}

VerifyReport VerifyCheckpoints(const std::filesystem::path& folder, FileSystem& files) {
  return Verifier(folder, files).Verify();
}

std::vector<Manifest> InspectCheckpoints(const std::filesystem::path& folder, FileSystem& files) {
  std::vector<Manifest> manifests;
  for (const std::uint64_t number : ManifestNumbers(ListCheckpoints(files, folder))) {
    try {
      manifests.push_back(ReadManifest(files, folder, ManifestName(number)));
    } catch (const Error&) {
      // VerifyCheckpoints() reports what is wrong with it.
    }
  }
  return manifests;
}

}  // namespace uper::checkpoint
