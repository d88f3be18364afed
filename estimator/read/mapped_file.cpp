#include "estimator/read/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <vector>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/read/descriptor.h"

namespace headroom {
namespace {

/// Up to this size a file is mapped whole at once: fewer page faults than touching it bit by bit.
constexpr std::size_t small_file = 32 << 20;
constexpr std::size_t page = 4096;

std::string message_of(int error) { return std::generic_category().message(error); }

/// Names in `folder` that could be meant; only the first few thousand are looked at.
std::vector<std::string> names_in(const std::filesystem::path& folder, bool only_onnx) {
  std::vector<std::string> names;
  std::error_code ec;
  int looked_at = 0;
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end && ++looked_at < 5000;
       it.increment(ec))
    if (!only_onnx || it->path().extension() == ".onnx") names.push_back(it->path().filename().string());
  return names;
}

Error missing(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const std::vector<std::string> names = names_in(folder, false);
  const std::string_view near = nearest(path.filename().string(), names);
  return bad_input("no such file", path.string(),
                   near.empty() ? "" : "did you mean '" + (path.parent_path() / near).string() + "'?");
}

Error directory(const std::filesystem::path& path) {
  const std::vector<std::string> names = names_in(path, true);
  return bad_input(
      "is a directory, no ONNX file", path.string(),
      names.empty() ? "name the .onnx file" : "name the file, for example '" + (path / names.front()).string() + "'");
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid() && (errno == ENOENT || errno == ENOTDIR)) throw missing(path);
  if (!file.valid()) throw bad_input("cannot be opened: " + message_of(errno), path.string());
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw bad_input("cannot be read: " + message_of(errno), path.string());
  if (S_ISDIR(status.st_mode)) throw directory(path);
  if (!S_ISREG(status.st_mode))
    throw bad_input("is no regular file", path.string(),
                    "pipes and devices cannot be mapped: write the model to a file");
  if (status.st_size <= 0) throw bad_input("the file is empty", path.string(), "export the model again");

  size_ = static_cast<std::size_t>(status.st_size);
  void* at = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE | (size_ <= small_file ? MAP_POPULATE : 0), file.get(), 0);
  if (at == MAP_FAILED) throw bad_input("cannot be mapped: " + message_of(errno), path.string());
  data_ = static_cast<char*>(at);
  guard_.emplace(data_, size_);
  // Without it the kernel reads ahead, that is, the weights: 4.1 s against 28 ms for 2.5 GB on a cold cache.
  if (size_ > small_file) ::madvise(data_, size_, MADV_RANDOM);
}

MappedFile::~MappedFile() {
  guard_.reset();
  ::munmap(data_, size_);
}

void MappedFile::forget_before(std::size_t offset) {
  constexpr std::size_t window = 16 << 20;
  if (offset < forgotten_ + window) return;
  const std::size_t to = offset / page * page;
  ::madvise(data_ + forgotten_, to - forgotten_, MADV_DONTNEED);
  forgotten_ = to;
}

}  // namespace headroom
