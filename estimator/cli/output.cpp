#include "estimator/cli/output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom::cli {
namespace {

/// Zero when all was written, else errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

Error cannot_write(const std::string& where, int why) {
  return environment_error(
      std::string("cannot write the result: ") + std::strerror(why), printable(where),
      why == ENOSPC ? "free some space, or write elsewhere" : "choose another -o, or leave it out");
}

}  // namespace

void write_result(std::string_view text, const std::string& path) {
  if (path.empty()) {
    if (const int why = write_all(STDOUT_FILENO, text)) throw cannot_write("standard output", why);
    return;
  }
  // A device or pipe cannot be replaced by a file: write straight to it.
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) throw cannot_write(path, errno);
    const int why = write_all(fd, text);
    ::close(fd);
    if (why) throw cannot_write(path, why);
    return;
  }
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkstemp(temporary.data());
  if (fd < 0) throw cannot_write(path, errno);
  int why = write_all(fd, text);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd, 0666 & ~mask);
  if (::close(fd) != 0 && why == 0) why = errno;
  if (why == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) why = errno;
  if (why != 0) {
    ::unlink(temporary.c_str());
    throw cannot_write(path, why);
  }
}

bool colours_wanted(int descriptor) {
  const char* no = std::getenv("NO_COLOR");
  return ::isatty(descriptor) != 0 && (no == nullptr || *no == '\0');
}

int terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

}  // namespace headroom::cli
