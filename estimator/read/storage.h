// Storage: the memory behind a Model.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string_view>

#include "estimator/base/bytes.h"
#include "estimator/read/arena.h"
#include "estimator/read/external_data.h"
#include "estimator/read/graph.h"
#include "estimator/read/mapped_file.h"

namespace headroom {

struct Model::Storage {
  /// Of drafts and graph together; the largest exports take some 10 MiB.
  static constexpr std::int64_t memory_limit = 512 * MiB;

  std::unique_ptr<MappedFile> file;  ///< null when the bytes are the caller's
  std::string_view bytes;
  CountedMemory heap{static_cast<std::size_t>(memory_limit)};
  Arena arena{std::size_t{1} << 16, &heap};
  ExternalData external;
  std::shared_future<std::uint64_t> hash;  ///< last: it still reads the bytes
};

}  // namespace headroom
