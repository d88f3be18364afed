#include "calibration/measure/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>
#include <utility>

#include "estimator/base/error.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t errors_kept = 4096;

volatile std::sig_atomic_t caught = 0;
void on_signal(int signal) { caught = signal; }

/// SIGINT and SIGTERM end a wait instead of us; SIGPIPE is the child that does not read. Children may run side by side.
class SignalGuard {
 public:
  SignalGuard() {
    const std::scoped_lock lock(mutex_);
    if (guards_++ > 0) return;
    caught = 0;
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &before_[2]);
  }
  ~SignalGuard() {
    const std::scoped_lock lock(mutex_);
    if (--guards_ > 0) return;
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
    sigaction(SIGPIPE, &before_[2], nullptr);
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  static inline std::mutex mutex_;
  static inline int guards_ = 0;
  static inline std::array<struct sigaction, 3> before_{};
};

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

std::string reason() { return std::strerror(errno); }

struct Pipe {
  Descriptor read, write;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw environment_error("no pipe: " + reason());
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
  }
};

[[noreturn]] void become(const std::filesystem::path& program, const std::map<std::string, std::string>& environment,
                         pid_t parent, int in, int out, int err, int failure) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  setpgid(0, 0);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  std::signal(SIGPIPE, SIG_DFL);
  for (const auto& [name, value] : environment)
    if (value.empty())
      unsetenv(name.c_str());
    else
      setenv(name.c_str(), value.c_str(), 1);
  execl(program.c_str(), program.c_str(), nullptr);
  const int code = errno;
  [[maybe_unused]] const auto told = write(failure, &code, sizeof code);
  _exit(127);
}

/// A started child; killed with its group when this goes.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (!waited_) kill_and_wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int kill_and_wait() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    return wait();
  }
  int wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR && caught == 0) continue;
    waited_ = true;
    ::kill(-pid_, SIGKILL);  // what it may have started
    return status;
  }

 private:
  pid_t pid_;
  bool waited_ = false;
};

/// Reads what is there; false at the end.
bool drain(int fd, std::string& into) {
  std::array<char, 1 << 16> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) into.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

}  // namespace

ChildResult run_child(const std::filesystem::path& program, const std::string& input,
                      const std::map<std::string, std::string>& environment, const ChildLimits& limits) {
  const SignalGuard signals;
  Pipe in, out, err, failure;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw environment_error("no process: " + reason());
  if (pid == 0)
    become(program, environment, parent, in.read.get(), out.write.get(), err.write.get(), failure.write.get());
  Child child(pid);
  for (Descriptor* d : {&in.read, &out.write, &err.write, &failure.write}) d->close();
  int code = 0;
  if (read(failure.read.get(), &code, sizeof code) == sizeof code)
    throw environment_error(std::string("cannot be started: ") + std::strerror(code), program.string());

  ChildResult result;
  fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
  const auto end = Clock::now() + limits.time;
  std::size_t written = 0;
  while (out.read.open() || err.read.open()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      child.kill_and_wait();
      result.end = ChildResult::End::timed_out;
      return result;
    }
    std::array<pollfd, 3> waits{
        {{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {in.write.get(), POLLOUT, 0}}};
    const int ready = poll(waits.data(), waits.size(), static_cast<int>(std::min<std::int64_t>(left, 1000)));
    if (caught != 0) {
      child.kill_and_wait();
      const int signal = caught;
      std::signal(signal, SIG_DFL);
      raise(signal);
    }
    if (ready < 0 && errno != EINTR) throw environment_error("poll: " + reason());
    if (ready <= 0) continue;
    if (waits[2].revents != 0) {
      const ssize_t n = write(in.write.get(), input.data() + written, input.size() - written);
      if (n > 0) written += static_cast<std::size_t>(n);
      if (written == input.size() || (n < 0 && errno != EAGAIN && errno != EINTR)) in.write.close();
    }
    if (waits[0].revents != 0 && !drain(out.read.get(), result.output)) out.read.close();
    if (waits[1].revents != 0 && !drain(err.read.get(), result.errors)) err.read.close();
    if (result.errors.size() > 2 * errors_kept) result.errors.erase(0, result.errors.size() - errors_kept);
    if (result.output.size() > limits.output_bytes) {
      child.kill_and_wait();
      result.end = ChildResult::End::too_much;
      return result;
    }
  }
  const int status = child.wait();
  if (WIFSIGNALED(status)) {
    result.end = ChildResult::End::signalled;
    result.code = WTERMSIG(status);
  } else {
    result.code = WEXITSTATUS(status);
  }
  return result;
}

}  // namespace headroom
