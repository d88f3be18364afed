// The exports in cases.tar.xz, and the programs expected of them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "estimator/recover/recover.h"

namespace headroom::test {

inline std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(RECOVER_CASES))
    if (entry.path().extension() == ".onnx") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline std::filesystem::path case_file(const std::string& name) {
  return std::filesystem::path(RECOVER_CASES) / (name + ".onnx");
}
inline std::filesystem::path expected_file(const std::string& name) {
  return std::filesystem::path(RECOVER_PROGRAMS) / (name + ".txt");
}

/// The training program of a case at batch 2, sequence 6.
inline Program recovered(const std::string& name, const RecoverOptions& options = {}) {
  const Model model = read_model(case_file(name));
  Bindings bindings;
  bindings.batch = 2;
  if (name.starts_with("decoder") || name.starts_with("recurrent")) bindings.sequence = 6;
  return recover(bind(model, bindings), options);
}

}  // namespace headroom::test
