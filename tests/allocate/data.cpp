#include "tests/allocate/data.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace headroom {
namespace {

const std::filesystem::path folder = std::filesystem::path(ALLOCATE_TEST_FOLDER) / "data";

}  // namespace

std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".xz") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string recorded_bytes(const std::string& name) {
  const std::string command = "xz -dc '" + (folder / (name + ".xz")).string() + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("xz cannot be started");
  std::string bytes;
  std::array<char, 1 << 16> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) bytes.append(buffer.data(), n);
  if (pclose(pipe) != 0) throw std::runtime_error("xz cannot unpack " + name);
  return bytes;
}

}  // namespace headroom
