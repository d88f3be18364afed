#include "calibration/fit/calibrate.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include "calibration/fit/conv_grid.h"
#include "calibration/fit/reference_program.h"
#include "calibration/measure/verification.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/shaped_programs.h"
#include "estimator/plan/step_trace.h"
#include "estimator/read/graph.h"
#include "estimator/shadow/kernels/conv_table.h"

namespace headroom {
namespace {

using Clock = std::chrono::steady_clock;
using shadow::ConvCall;
using shadow::ConvShape;
using shadow::ConvWorkspaces;
using shadow::MeasuredConv;

constexpr std::chrono::seconds seconds_for_a_run{6};
/// One part of so many of the budget is for the last answers, the table and the cross-validation.
constexpr int part_to_finish = 30;
/// For convolutions at least, however long the start took: a profile of none would tell nothing.
constexpr std::chrono::seconds least_for_convolutions{2};
/// Calls that the cross-validation asks for, about.
constexpr std::size_t most_asked = 4000;
/// Probes of one process: a crash costs what it had not answered, a start one or two seconds.
constexpr std::chrono::seconds seconds_for_a_process{30};
constexpr std::size_t probes_of_a_process = 4000;
/// A convolution's operands and workspace, and what is cached of those before; its allocator takes no more.
constexpr std::int64_t memory_of_a_process = 8 * GiB;
constexpr std::int64_t context_of_a_process = 1 * GiB;
constexpr std::int64_t most_processes = 24;
/// What is smaller is a tensor of the reference program.
constexpr std::int64_t smallest_workspace = 512 * KiB;
/// A card that fails so often is not measured further.
constexpr std::size_t most_crashes = 5;

ConvShape shape_of(const ConvProbe& p) {
  const auto out = [&](std::size_t i) {
    return (p.input[i] + 2 * p.padding[i] - p.dilation[i] * (p.kernel[i] - 1) - 1) / p.stride[i] + 1;
  };
  return {false,    p.channels_last, p.dtype,   p.batch,    p.in_channels, p.out_channels,  p.groups,
          p.kernel, p.stride,        p.padding, p.dilation, p.input,       {out(0), out(1)}};
}

ConvProbe probe_of(const ConvShape& s) {
  return {.in_channels = s.in_channels,
          .out_channels = s.out_channels,
          .groups = s.groups,
          .batch = s.batch,
          .kernel = s.kernel,
          .stride = s.stride,
          .padding = s.padding,
          .dilation = s.dilation,
          .input = s.input,
          .dtype = s.dtype,
          .channels_last = s.channels_last};
}

/// Identity of a probe, for sets and files.
std::string name_of(const ConvProbe& p) {
  std::string out;
  for (const std::int64_t n : {p.in_channels, p.out_channels, p.groups, p.batch}) out += std::to_string(n) + " ";
  for (const Dims* d : {&p.kernel, &p.stride, &p.padding, &p.dilation, &p.input}) out += text_of(*d);
  return out + " " + std::string(name_of(p.dtype)) + (p.channels_last ? " last" : "");
}

/// Convolutions that the models' steps ask for, in float32 and bfloat16.
std::vector<ConvProbe> probes_of_models(const CalibrateOptions& options) {
  const ConvWorkspaces nothing_known("");
  for (const auto& path : options.models) {
    const Model model = read_model(path);
    for (const Precision precision : {Precision::fp32, Precision::amp_bf16}) {
      Scenario s = options.scenario;
      s.precision = precision;
      step_trace(shaped_programs(model, s), s, &nothing_known);
    }
  }
  std::vector<ConvProbe> out;
  for (const ConvShape& s : nothing_known.asked())
    if (s.kernel.size() == 2) out.push_back(probe_of(s));
  std::ranges::sort(out, {}, [](const ConvProbe& p) { return name_of(p); });
  return out;
}

/// What was measured, kept in a file while the calibration runs. Its first line is the card and its software.
class Kept {
 public:
  Kept(std::filesystem::path path, std::string card) : path_(std::move(path)), card_(std::move(card)) {
    std::ifstream in(path_);
    std::string line;
    if (!std::getline(in, line) || line != card_) {
      std::ofstream out(path_, std::ios::trunc);
      out << card_ << "\n";
      if (!out.flush()) throw environment_error("cannot be written", path_.string());
      return;
    }
    while (std::getline(in, line)) {
      const auto tab = line.find('\t');
      if (tab == std::string::npos || in.eof()) break;  // the line at which it was stopped
      Workspaces w;
      const auto numbers = split(std::string_view(line).substr(tab + 1), ' ');
      for (std::size_t i = 0; i < std::min(numbers.size(), w.size()); ++i)
        if (const auto n = parse_int(numbers[i])) w[i] = Bytes(*n);
      known_.emplace(line.substr(0, tab), w);
    }
  }
  using Workspaces = std::array<std::optional<Bytes>, 3>;

  const Workspaces* find(const ConvProbe& p) const {
    const auto found = known_.find(name_of(p));
    return found == known_.end() ? nullptr : &found->second;
  }
  void add(const std::vector<std::pair<ConvProbe, Workspaces>>& measured) {
    std::ofstream out(path_, std::ios::app);
    for (const auto& [p, w] : measured) {
      out << name_of(p) << '\t';
      for (const auto& bytes : w) out << (bytes ? std::to_string(bytes->count()) : "-") << ' ';
      out << '\n';
    }
    if (!out.flush()) throw environment_error("cannot be written", path_.string());
  }

 private:
  std::filesystem::path path_;
  std::string card_;
  std::map<std::string, Workspaces> known_;
};

/// How many processes may share the card, so that none runs short of memory: where it does, cuDNN takes another kernel.
std::size_t processes_on(const MeasuredDevice& device) {
  const std::int64_t room = (device.total - device.others).count() / (memory_of_a_process + context_of_a_process);
  const auto cores = static_cast<std::int64_t>(std::max(1U, std::thread::hardware_concurrency()));
  return static_cast<std::size_t>(std::clamp<std::int64_t>(std::min(room, cores - 1), 1, most_processes));
}

/// Measures the models' convolutions and then a grid's, until the time is over, with processes side by side.
class ConvCampaign {
 public:
  ConvCampaign(const CalibrateOptions& options, Kept& kept, Clock::time_point end, std::future<ConvGrid> grid)
      : options_(options), kept_(kept), end_(end), wanted_(probes_of_models(options)), grid_made_(std::move(grid)) {}

  std::vector<MeasuredConv> run(std::size_t processes) {
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < processes; ++i)
      workers.emplace_back([this] {
        try {
          work();
        } catch (...) {
          const std::scoped_lock lock(mutex_);
          broken_ = std::current_exception();
        }
      });
    for (std::thread& w : workers) w.join();
    if (broken_) std::rethrow_exception(broken_);
    if (out_.empty() && failure_) throw *failure_;
    // In an order that does not hang on who was faster.
    std::ranges::sort(out_, {}, [](const auto& m) { return m.first; });
    std::vector<MeasuredConv> calls;
    for (auto& [at, call] : out_) calls.push_back(std::move(call));
    return calls;
  }

 private:
  struct Question {
    std::size_t at = 0;
    ConvProbe probe;
  };

  bool over() const { return (grid_ && Clock::now() >= end_) || crashes_ >= most_crashes || broken_; }

  void work() {
    std::vector<Question> batch;
    while (true) {
      Job job;
      job.memory = Bytes(memory_of_a_process);
      {
        const std::scoped_lock lock(mutex_);
        if (over()) return;
        fill(batch);
        const Clock::duration left = grid_ ? end_ - Clock::now() : least_for_convolutions;
        job.seconds = std::chrono::duration<double>(std::min<Clock::duration>(left, seconds_for_a_process)).count();
      }
      for (const Question& q : batch) job.convolutions.push_back(q.probe);
      const Measurement m = measure(options_.runner, job);
      const std::scoped_lock lock(mutex_);
      take(m, batch);
    }
  }

  /// The next probes that are not known yet.
  void fill(std::vector<Question>& batch) {
    while (batch.size() < probes_of_a_process) {
      const std::size_t at = next_++;
      const ConvProbe p = at < wanted_.size() ? wanted_[at] : grid().next();
      if (!taken_.insert(name_of(p)).second) continue;
      if (const auto* w = kept_.find(p))
        record({at, p}, *w);
      else
        batch.push_back({at, p});
    }
  }

  ConvGrid& grid() {
    if (!grid_) {
      grid_ = grid_made_.get();
      end_ = std::max(end_, Clock::now() + least_for_convolutions);
    }
    return *grid_;
  }

  void take(const Measurement& m, std::vector<Question>& batch) {
    std::vector<std::pair<ConvProbe, Kept::Workspaces>> measured;
    for (const auto& [index, w] : m.convolutions) {
      if (index >= batch.size())
        throw environment_error("headroom-runner answered a convolution that was not asked for");
      measured.emplace_back(batch[index].probe, w);
      record(batch[index], w);
    }
    kept_.add(measured);
    const bool failed = m.outcome == Measurement::Outcome::failed;
    if (failed) {
      options_.progress("a measurement failed and is passed over: " + m.message);
      failure_ = Error(m.code, m.message);
      ++crashes_;
    }
    // What a process died of is the first that it did not answer.
    const std::size_t done = std::min(measured.size() + (failed ? 1 : 0), batch.size());
    batch.erase(batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(done));
    options_.progress(std::to_string(out_.size()) + " convolutions measured");
  }

  void record(const Question& q, const Kept::Workspaces& w) {
    if (std::ranges::any_of(w, [](const auto& b) { return b.has_value(); }))
      out_.push_back({q.at, {shape_of(q.probe), w}});
  }

  const CalibrateOptions& options_;
  Kept& kept_;
  Clock::time_point end_;
  std::vector<ConvProbe> wanted_;
  std::future<ConvGrid> grid_made_;
  std::optional<ConvGrid> grid_;
  std::mutex mutex_;
  std::size_t next_ = 0, crashes_ = 0;
  std::set<std::string> taken_;
  std::vector<std::pair<std::size_t, MeasuredConv>> out_;
  std::optional<Error> failure_;
  std::exception_ptr broken_;
};

/// Tells every second layer from the others.
void cross_validate(Profile& profile, const std::vector<MeasuredConv>& calls) {
  std::vector<MeasuredConv> known, asked;
  std::unordered_map<std::string, bool> known_layer;
  const std::size_t apart = std::max<std::size_t>(calls.size() / 2 / most_asked, 1);
  std::size_t unknown = 0;
  for (const MeasuredConv& c : calls) {
    ConvProbe layer = probe_of(c.shape);
    layer.batch = 1;
    layer.dtype = DType::f32;
    if (known_layer.try_emplace(name_of(layer), known_layer.size() % 2 == 0).first->second)
      known.push_back(c);
    else if (unknown++ % apart == 0)
      asked.push_back(c);
  }
  if (known.empty()) return;
  const std::string table = shadow::conv_table(known, "half");
  const ConvWorkspaces half(table);
  Profile::CrossValidation* const results[] = {&profile.forward, &profile.input_gradient, &profile.weight_gradient};
  for (const MeasuredConv& c : asked)
    for (const ConvCall call : {ConvCall::forward, ConvCall::input_gradient, ConvCall::weight_gradient}) {
      const auto i = static_cast<std::size_t>(call);
      if (!c.workspaces[i]) continue;
      const std::int64_t error = std::abs((half.find(c.shape, call).bytes - *c.workspaces[i]).count());
      ++results[i]->calls;
      results[i]->exact += error == 0 ? 1 : 0;
      results[i]->near += error * 100 <= shadow::operands_of(c.shape, 1).total().count() ? 1 : 0;
    }
}

/// Blocks that calls of this kind left behind in the first step, the largest first: the workspaces of a library.
std::vector<Bytes> left_behind(const Measurement& m, std::string_view op, Phase phase) {
  std::map<std::uint64_t, const MeasuredEvent*> live;
  for (const MeasuredEvent& e : m.events)
    if (e.alloc)
      live[e.address] = &e;
    else
      live.erase(e.address);
  std::vector<Bytes> out;
  for (const auto& [address, e] : live)
    if (e->step == 0 && e->phase == phase && e->op.find(op) != std::string::npos && e->bytes >= smallest_workspace)
      out.emplace_back(e->bytes);
  std::ranges::sort(out, std::greater<>{});
  return out;
}

}  // namespace

Profile calibrate(const CalibrateOptions& options) {
  const auto start = Clock::now();
  auto grid = std::async(std::launch::async, [] { return ConvGrid(); });
  Job job;
  job.history = true;
  job.programs = {std::make_shared<const Program>(reference_program())};
  job.order = {0};
  const Measurement m = measure(options.runner, job);
  if (m.outcome != Measurement::Outcome::completed)
    throw Error(m.outcome == Measurement::Outcome::failed ? m.code : Exit::environment, m.message);

  Profile p;
  p.card = card_of(m.device);
  p.driver = m.device.driver;
  p.torch = m.device.torch;
  p.cuda = m.device.cuda;
  p.cudnn = m.device.cudnn;
  p.context = std::max(m.device.context, m.device_peak().value_or(Bytes()) - m.reserved_peak());
  // Backward runs on a thread of its own, which takes a workspace of its own; a linear with bias goes to cuBLASLt, on a
  // thread that has taken cuBLAS' before.
  const auto of_thread = left_behind(m, "AddmmBackward", Phase::backward);
  if (!of_thread.empty()) p.cublas_workspace = of_thread.front();
  auto of_linear = left_behind(m, "aten::linear", Phase::forward);
  if (const auto cublas = std::ranges::find(of_linear, p.cublas_workspace); cublas != of_linear.end())
    of_linear.erase(cublas);
  if (!of_linear.empty()) p.cublaslt_workspace = of_linear.front();

  Kept kept(options.kept, p.card.name + " driver " + p.driver + " torch " + p.torch + " cudnn " + p.cudnn);
  const auto for_runs = seconds_for_a_run * static_cast<std::int64_t>(options.models.size());
  const auto calls =
      ConvCampaign(options, kept, start + options.budget - options.budget / part_to_finish - for_runs, std::move(grid))
          .run(processes_on(m.device));
  p.convolutions = static_cast<std::int64_t>(calls.size());
  p.convolution_table = shadow::conv_table(calls, p.card.name + ", torch " + p.torch + ", cuDNN " + p.cudnn + " | " +
                                                      std::to_string(calls.size()) + " calls");
  p.extends_built_in = !options.from_nothing &&
                       shadow::ConvWorkspaces::built_in(p.card.compute_major, static_cast<int>(p.card.sm_count));
  p.index();
  cross_validate(p, calls);
  return p;
}

void run_models(Profile& profile, const std::string& path, const CalibrateOptions& options) {
  std::optional<Bytes> least;
  for (const auto& file : options.models) {
    Estimator estimator(file);
    Scenario s = options.scenario;
    s.profile = path;
    const Verification v = verify(estimator, s, {.runner = options.runner, .memory = {}, .history = false});
    const std::string name = file.filename().string();
    if (v.measured.outcome != Measurement::Outcome::completed) {
      options.progress(name + " did not run: " + v.measured.message);
      continue;
    }
    const Bytes device = v.measured.device_peak().value_or(Bytes()), reserved = v.measured.reserved_peak();
    profile.runs.push_back({.name = name,
                            .estimated_allocated = v.estimate.peak_allocated,
                            .measured_allocated = v.measured.allocated_peak(),
                            .estimated_reserved = v.estimate.peak_reserved,
                            .measured_reserved = reserved,
                            .measured_device = device});
    options.progress(name + " has run");
    if (device <= reserved) continue;
    profile.context = std::max(profile.context, device - reserved);
    least = std::min(least.value_or(device - reserved), device - reserved);
  }
  if (least) profile.context_uncertainty = profile.context - *least;
}

}  // namespace headroom
