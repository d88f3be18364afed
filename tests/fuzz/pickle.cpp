// Any bytes through the pickle reader.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "estimator/allocate/pickle_reader.h"
#include "estimator/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    headroom::read_pickle({reinterpret_cast<const char*>(bytes), size}, "fuzz");
  } catch (const headroom::Error&) {
  }
  return 0;
}
