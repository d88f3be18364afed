// weight_bytes: the few bytes that tell tied weights from untied ones.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <system_error>

#include "estimator/base/bytes.h"
#include "estimator/read/descriptor.h"
#include "estimator/read/external_data.h"
#include "estimator/read/graph.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t few = 1 * MiB;

fs::path folder_of(const fs::path& file) {
  std::error_code ec;
  const fs::path folder = fs::canonical(file.has_parent_path() ? file.parent_path() : fs::path("."), ec);
  return ec ? fs::path() : folder;
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  return !folder.empty() && std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

/// Where `location` leads with all links resolved; nothing when that is outside the model's folder. Download caches
/// keep links to the model and its data in one folder and both files in another: then the latter is its folder too.
std::optional<fs::path> resolved(const fs::path& model, const fs::path& location) {
  std::error_code ec;
  const fs::path folder = folder_of(model);
  const fs::path target = fs::canonical(folder / location, ec);
  if (ec || folder.empty()) return std::nullopt;
  const fs::path linked = fs::canonical(model, ec);
  if (lies_in(target, folder) || (!ec && lies_in(target, linked.parent_path()))) return target;
  return std::nullopt;
}

/// An invalid one when `location` may not be read.
Descriptor opened(const fs::path& model, std::string_view location) {
  const auto path = resolved(model, location);
  if (!path) return Descriptor(-1);
  Descriptor file(::open(path->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return Descriptor(-1);
  return file;
}

std::vector<std::byte> read_at(const Descriptor& file, std::int64_t offset, std::int64_t count) {
  if (!file.valid()) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto n =
        ::pread(file.get(), bytes.data() + done, bytes.size() - done, offset + static_cast<std::int64_t>(done));
    if (n <= 0) return {};
    done += static_cast<std::size_t>(n);
  }
  return bytes;
}

}  // namespace

const Descriptor& ExternalData::file(const fs::path& model, std::string_view location) {
  if (location_ != location || !file_) {
    location_ = location;
    file_.emplace(opened(model, location));
  }
  return *file_;
}

std::vector<std::byte> weight_bytes(const Model& model, const TensorData& tensor, std::int64_t offset,
                                    std::int64_t count) {
  using Where = TensorData::Where;
  if (offset < 0 || count <= 0 || count > few) return {};
  if (tensor.where == Where::raw || tensor.where == Where::decoded) {
    const auto size = static_cast<std::int64_t>(tensor.bytes.size());
    if (offset > size || count > size - offset) return {};
    const auto part = tensor.bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
    return {part.begin(), part.end()};
  }
  if (tensor.where != Where::external || tensor.offset < 0) return {};
  if (tensor.length >= 0 && (offset > tensor.length || count > tensor.length - offset)) return {};
  std::int64_t at = 0;
  if (__builtin_add_overflow(tensor.offset, offset, &at)) return {};
  return read_at(external_data_of(model).file(model.path, tensor.location), at, count);
}

}  // namespace headroom
