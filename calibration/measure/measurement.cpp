#include "calibration/measure/measurement.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "calibration/measure/child.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

using Json = nlohmann::json;

Bytes bytes_at(const Json& j, const char* key) { return Bytes(j.at(key).get<std::int64_t>()); }

Phase phase_named(const std::string& name) {
  for (const Phase p : {Phase::setup, Phase::forward, Phase::backward, Phase::optimizer, Phase::zero_grad})
    if (name_of(p) == name) return p;
  throw bad_input("unknown phase '" + name + "'");
}

/// The runner's lines, in order.
class Reader {
 public:
  explicit Reader(Measurement& m) : m_(m) {}

  void line(std::string_view text) {
    const Json j = Json::parse(text);
    const auto& event = j.at("event").get_ref<const std::string&>();
    if (event == "start")
      start(j);
    else if (event == "phase")
      m_.phases.push_back(phase(j));
    else if (event == "memory")
      memory(j);
    else if (event == "convolution")
      convolution(j);
    else if (event == "end")
      end(j);
  }
  bool ended() const { return ended_; }

 private:
  void start(const Json& j) {
    MeasuredDevice& d = m_.device;
    j.at("device").get_to(d.name);
    j.at("torch").get_to(d.torch);
    j.at("cuda").get_to(d.cuda);
    j.at("cudnn").get_to(d.cudnn);
    j.at("driver").get_to(d.driver);
    d.total = bytes_at(j, "total_bytes");
    d.context = bytes_at(j, "context_bytes");
    d.others = bytes_at(j, "others_bytes");
    j.at("sm_count").get_to(d.sm_count);
    const auto parts = split(j.at("compute_capability").get_ref<const std::string&>(), '.');
    d.compute_major = static_cast<int>(parse_int(parts.at(0)).value_or(0));
    d.compute_minor = static_cast<int>(parse_int(parts.at(1)).value_or(0));
  }
  static MeasuredPhase phase(const Json& j) {
    MeasuredPhase p;
    p.phase = phase_named(j.at("phase"));
    j.at("step").get_to(p.step);
    p.allocated_peak = bytes_at(j, "allocated_peak_bytes");
    p.reserved_peak = bytes_at(j, "reserved_peak_bytes");
    if (j.contains("device_bytes")) p.device = bytes_at(j, "device_bytes");
    j.at("seconds").get_to(p.seconds);
    return p;
  }
  void memory(const Json& j) {
    const auto& action = j.at("action").get_ref<const std::string&>();
    if (action != "alloc" && action != "free") return;
    m_.events.push_back({.alloc = action == "alloc",
                         .bytes = j.at("bytes"),
                         .address = j.at("address"),
                         .step = j.at("step"),
                         .phase = phase_named(j.at("phase")),
                         .op = j.at("op"),
                         .site = j.at("site"),
                         .module = j.at("module")});
  }
  void convolution(const Json& j) {
    auto& [index, bytes] = m_.convolutions.emplace_back();
    j.at("index").get_to(index);
    const Json& workspaces = j.at("workspaces");
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (!workspaces.at(i).is_null()) bytes[i] = Bytes(workspaces.at(i).get<std::int64_t>());
  }
  void end(const Json& j) {
    ended_ = true;
    const auto& outcome = j.at("outcome").get_ref<const std::string&>();
    m_.outcome = outcome == "completed"       ? Measurement::Outcome::completed
                 : outcome == "out-of-memory" ? Measurement::Outcome::out_of_memory
                                              : Measurement::Outcome::failed;
    m_.message = j.value("message", "");
    m_.op = j.value("op", "");
    m_.site = j.value("site", "");
    m_.module = j.value("module", "");
  }

  Measurement& m_;
  bool ended_ = false;
};

std::string last_line(const std::string& text) {
  const auto lines = split(trim(text), '\n');
  return lines.empty() ? "" : printable(lines.back(), 200);
}

std::string with_reason(std::string what, const std::string& errors) {
  const std::string line = last_line(errors);
  return line.empty() ? what : what + ": " + line;
}

}  // namespace

Bytes Measurement::allocated_peak() const {
  Bytes peak;
  for (const MeasuredPhase& p : phases)
    if (p.phase != Phase::setup) peak = std::max(peak, p.allocated_peak);
  return peak;
}

Bytes Measurement::reserved_peak() const {
  Bytes peak;
  for (const MeasuredPhase& p : phases) peak = std::max(peak, p.reserved_peak);
  return peak;
}

std::optional<Bytes> Measurement::device_peak() const {
  std::optional<Bytes> peak;
  for (const MeasuredPhase& p : phases)
    if (p.device) peak = std::max(peak.value_or(Bytes()), *p.device);
  return peak;
}

double Measurement::seconds() const {
  double sum = 0;
  for (const MeasuredPhase& p : phases) sum += p.seconds;
  return sum;
}

Runner find_runner(const std::string& given) {
  const char* const from_environment = std::getenv("HEADROOM_RUNNER");
  const std::string named = !given.empty() ? given : from_environment ? from_environment : "";
  if (!named.empty()) {
    if (access(named.c_str(), X_OK) != 0)
      throw environment_error("no runner there: " + std::string(std::strerror(errno)), named,
                              "scripts/setup --runner && scripts/build makes build/headroom-runner");
    return {.path = named};
  }
  std::vector<std::filesystem::path> folders;
  std::error_code none;
  folders.push_back(std::filesystem::read_symlink("/proc/self/exe", none).parent_path());
  if (const char* path = std::getenv("PATH"))
    for (const auto folder : split(path, ':')) folders.emplace_back(folder);
  for (const auto& folder : folders)
    if (const auto path = folder / "headroom-runner"; !folder.empty() && access(path.c_str(), X_OK) == 0)
      return {.path = path};
  throw environment_error("headroom-runner is not here, beside this program or on the PATH", "",
                          "scripts/setup --runner && scripts/build makes it; --runner PATH names it");
}

Measurement measure(const Runner& runner, const Job& job) {
  const std::string conf = job.scenario.alloc_conf;
  const ChildResult child =
      run_child(runner.path, job_text(job), {{"PYTORCH_ALLOC_CONF", conf}, {"PYTORCH_CUDA_ALLOC_CONF", conf}},
                {.time = runner.limit});
  Measurement m;
  Reader reader(m);
  const auto fail = [&m](std::string message) {
    m.outcome = Measurement::Outcome::failed;
    m.message = std::move(message);
  };
  for (const auto line : split(child.output, '\n')) {
    if (line.empty()) continue;
    try {
      reader.line(line);
    } catch (const std::exception&) {
      fail("headroom-runner answered what is no answer: '" + printable(line, 80) + "'");
      return m;
    }
  }
  if (child.end == ChildResult::End::timed_out)
    fail("headroom-runner gave no answer in " + std::to_string(runner.limit.count()) + " s and was stopped");
  else if (child.end == ChildResult::End::too_much)
    fail("headroom-runner answered more than can be read, and was stopped");
  else if (child.end == ChildResult::End::signalled)
    fail("headroom-runner was killed by signal " + std::to_string(child.code) + " (" + strsignal(child.code) + ")");
  else if (!reader.ended())
    fail(with_reason("headroom-runner ended with status " + std::to_string(child.code) + " and without an answer",
                     child.errors));
  else if (m.outcome == Measurement::Outcome::failed)
    m.code = static_cast<Exit>(child.code);
  return m;
}

}  // namespace headroom
