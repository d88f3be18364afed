// Any bytes as a snapshot or history: one Error or a replay, never a crash, a leak or a long wait.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "estimator/allocate/replay.h"
#include "estimator/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace headroom;
  try {
    const std::string_view text(reinterpret_cast<const char*>(bytes), size);
    for (const History& history : parse_histories(text, "fuzz")) {
      const ReplayScript script = make_script(history);
      check_replay(history, script);
      find_leaks(history, script);
    }
  } catch (const Error&) {
  }
  return 0;
}
