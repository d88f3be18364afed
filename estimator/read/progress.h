// Progress: follows the parser through the file, from front to back.
#pragma once

#include <cstdint>
#include <future>
#include <string_view>

#include "estimator/read/digest.h"
#include "estimator/read/mapped_file.h"

namespace headroom {

/// Digests every byte that is no weight payload, and lets go of the pages of a large mapping once they lie behind:
/// otherwise each tensor's header would keep the 64 KiB around it resident.
class Progress {
 public:
  /// `mapping` is null for a file that is in memory.
  Progress(std::string_view file, MappedFile* mapping) : file_(file), mapping_(mapping) {}

  /// The parser steps over `payload`, which lies behind everything it has passed so far. Short ones (a constant, a
  /// shape) are part of what the model is, and digested.
  void pass(std::string_view payload) {
    if (payload.size() <= short_payload) return;
    const auto begin = static_cast<std::size_t>(payload.data() - file_.data());
    digest_.add(file_.substr(digested_, begin - digested_));
    digested_ = begin + payload.size();
    if (mapping_ != nullptr) mapping_->forget_before(digested_);
  }

  /// Digest of the whole file, once all of it has been passed. Made beside what follows: `file` must stay that long.
  std::shared_future<std::uint64_t> finish() {
    const auto rest = [digest = digest_, bytes = file_.substr(digested_)]() mutable {
      digest.add(bytes);
      return digest.value();
    };
    const bool worth_a_thread = file_.size() - digested_ > threaded;
    return worth_a_thread ? std::async(rest) : std::async(std::launch::deferred, rest);
  }

 private:
  static constexpr std::size_t short_payload = 1024;
  static constexpr std::size_t threaded = 256 << 10;
  std::string_view file_;
  MappedFile* mapping_;
  std::size_t digested_ = 0;
  Digest digest_;
};

}  // namespace headroom
