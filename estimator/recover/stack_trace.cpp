#include "estimator/recover/stack_trace.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "estimator/base/text.h"

namespace headroom::recovery {

namespace {

std::size_t common_beginning(std::string_view a, std::string_view b) {
  constexpr std::size_t stretch = 128;  // compared at once: traces are many hundreds of characters long
  const std::size_t size = std::min(a.size(), b.size());
  std::size_t at = 0;
  while (at + stretch <= size && std::memcmp(a.data() + at, b.data() + at, stretch) == 0) at += stretch;
  for (; at + sizeof(std::uint64_t) <= size; at += sizeof(std::uint64_t)) {
    std::uint64_t x = 0, y = 0;
    std::memcpy(&x, a.data() + at, sizeof x);
    std::memcpy(&y, b.data() + at, sizeof y);
    if (x != y) break;
  }
  while (at < size && a[at] == b[at]) ++at;
  return at;
}

/// From behind: traces are long, and what is looked for stands near their end.
std::size_t last_of(std::string_view text, char c) {
  if (text.empty()) return std::string_view::npos;
  const void* const found = memrchr(text.data(), c, text.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data()) : std::string_view::npos;
}

constexpr std::string_view frame_begins = "File \"";

}  // namespace

std::string_view innermost_frame(std::string_view trace) {
  constexpr char first = frame_begins.front();
  for (std::size_t at = last_of(trace, first); at != std::string_view::npos; at = last_of(trace.substr(0, at), first))
    if (trace.substr(at).starts_with(frame_begins)) return trace.substr(at + frame_begins.size());
  return {};
}

std::string_view innermost_source(std::string_view trace) {
  const std::size_t newline = last_of(trace, '\n');
  if (newline == std::string_view::npos) return {};
  const std::string_view line = trim(trace.substr(newline + 1));
  return line.starts_with(frame_begins) ? std::string_view{} : line;
}

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
    if (line.starts_with(frame_begins)) {
      const std::size_t quote = line.find('"', 6);
      const std::size_t number = line.find(", line ", quote == std::string_view::npos ? 0 : quote);
      const std::size_t function = line.find(", in ", number == std::string_view::npos ? 0 : number);
      if (quote == std::string_view::npos || number == std::string_view::npos || function == std::string_view::npos)
        continue;
      Frame f;
      f.file = line.substr(6, quote - 6);
      f.file.remove_prefix(last_of(f.file, '/') + 1);
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
