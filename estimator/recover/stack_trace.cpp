#include "estimator/recover/stack_trace.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "estimator/base/text.h"

namespace headroom::recovery {

namespace {

/// Eight characters at once: traces are hundreds of characters long.
std::size_t common_beginning(std::string_view a, std::string_view b) {
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (x != y) break;
  }
  while (at < size && a[at] == b[at]) ++at;
  return at;
}

}  // namespace

const std::vector<Frame>& StackTraceReader::frames(std::string_view trace) {
  const std::size_t known = common_beginning(last_, trace);
  if (known == trace.size() && known == last_.size()) return frames_;
  std::size_t kept = frames_.size();
  while (kept > 0 && starts_[kept - 1] > known) --kept;
  // The last frame of the common beginning may go on in another way.
  std::size_t at = 0;
  if (kept > 0) at = starts_[--kept];
  frames_.resize(kept);
  starts_.resize(kept);
  last_ = trace;
  while (at < trace.size()) {
    const void* newline = std::memchr(trace.data() + at, '\n', trace.size() - at);
    const std::size_t end =
        newline ? static_cast<std::size_t>(static_cast<const char*>(newline) - trace.data()) : trace.size();
    const std::size_t begin = at;
    const std::string_view line = trim(trace.substr(at, end - at));
    at = end + 1;
    if (line.starts_with("File \"")) {
      const std::size_t quote = line.find('"', 6);
      const std::size_t number = line.find(", line ", quote == std::string_view::npos ? 0 : quote);
      const std::size_t function = line.find(", in ", number == std::string_view::npos ? 0 : number);
      if (quote == std::string_view::npos || number == std::string_view::npos || function == std::string_view::npos)
        continue;
      Frame f;
      f.file = line.substr(6, quote - 6);
      f.file.remove_prefix(f.file.rfind('/') + 1);
      f.line = line.substr(number + 7, function - number - 7);
      f.function = line.substr(function + 5);
      frames_.push_back(f);
      starts_.push_back(begin);
    } else if (!frames_.empty() && frames_.back().source.empty()) {
      frames_.back().source = line;
    }
  }
  return frames_;
}

}  // namespace headroom::recovery
