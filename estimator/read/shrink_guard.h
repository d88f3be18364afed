// ShrinkGuard: a mapped file that gets shorter must not end the process.
#pragma once

#include <cstddef>

namespace headroom {

/// While it lives, touching pages of the mapping that the file has lost reads zeros instead of raising SIGBUS, and
/// `file_shrank` tells. A handful of mappings can be guarded at once; more are left unguarded.
class ShrinkGuard {
 public:
  ShrinkGuard(char* data, std::size_t size);
  ShrinkGuard(const ShrinkGuard&) = delete;
  ShrinkGuard& operator=(const ShrinkGuard&) = delete;
  ~ShrinkGuard();

  bool file_shrank() const;

 private:
  std::size_t slot_;
};

}  // namespace headroom
