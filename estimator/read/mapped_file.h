// MappedFile: a file's bytes, read only where they are touched.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>

#include "estimator/read/shrink_guard.h"

namespace headroom {

class MappedFile {
 public:
  /// Throws Error(bad_input) for what is missing, no regular file, empty, unreadable or larger than the address space.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {data_, size_}; }

  /// True once bytes were read that the file has lost since it was opened; they read as zeros.
  bool shrank() const { return guard_->file_shrank(); }

  /// Gives back the pages before `offset`, now and then; they are read again when touched again.
  void forget_before(std::size_t offset);

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t forgotten_ = 0;
  std::optional<ShrinkGuard> guard_;
};

}  // namespace headroom
