#include "estimator/recover/lifetimes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "estimator/base/text.h"
#include "estimator/recover/common_locals.h"
#include "estimator/recover/line_statements.h"
#include "estimator/recover/python_names.h"
#include "estimator/recover/stack_trace.h"
#include "estimator/recover/statement.h"

namespace headroom::recovery {

namespace {

using CallIndex = std::int32_t;
using Readers = std::span<const CallIndex>;

/// One frame that was open while a call ran.
struct OpenFrame {
  std::int32_t id = 0;  ///< of this run of the function
  std::string_view line, source;
};
using OpenFrames = std::vector<OpenFrame>;

/// A frame as the metadata tells it.
struct ToldFrame {
  std::string_view file, function, scope, line, source;
};

/// The calls that one execution of a line makes.
struct Segment {
  CallIndex first, last;
  std::string_view line, source;
  std::vector<std::string_view> names;
  std::int32_t child;         ///< frame below, -1: a call of the frame itself
  std::size_t child_kind;     ///< the child's scope without its indices, or the operator
  std::size_t last_kind;      ///< of the call before
  std::size_t statement = 0;  ///< the follower's number of it
};

/// One run of a function.
struct Run {
  std::string_view file, function, scope;
  std::size_t kind = 0;  ///< the scope without its indices
  CallIndex last = 0;    ///< last call made while the frame was open
  std::vector<Segment> segments;
  std::unordered_map<std::string_view, std::vector<std::size_t>> bindings;  ///< name -> segments that bind it
  std::unordered_map<std::string_view, int> places;  ///< of the names asked for, among the locals
  std::optional<LineFollower> statements;            ///< of the line in hand
};

/// What a Python line reads: right of its "=", or all of it.
std::string_view read_part(std::string_view source) {
  if (parse_statement(source).names.empty()) return source;
  return source.substr(source.find('=') + 1);
}

/// Calls `use` with every variable that a piece of Python reads; attributes, functions and keywords are none.
template <typename Use>
void for_each_variable(std::string_view text, Use use) {
  for (std::size_t i = 0; i < text.size();) {
    if (!is_in_name(text[i])) {
      ++i;
      continue;
    }
    const std::size_t from = i;
    while (i < text.size() && is_in_name(text[i])) ++i;
    const bool attribute = from > 0 && text[from - 1] == '.';
    const bool keyword = i + 1 < text.size() && text[i] == '=' && text[i + 1] != '=';
    const bool function = i < text.size() && text[i] == '(';
    if (!attribute && !keyword && !function && !is_digit(text[from])) use(text.substr(from, i - from));
  }
}

bool reads_variable(std::string_view text, std::string_view name) {
  bool found = false;
  for_each_variable(text, [&](std::string_view v) { found = found || v == name; });
  return found;
}

std::size_t hash_without_indices(std::string_view scope) {
  std::size_t h = 1469598103934665603u;
  bool in_number = false;
  for (const char c : scope) {
    const bool digit = is_digit(c);
    if (digit && in_number) continue;
    in_number = digit;
    h = (h ^ static_cast<unsigned char>(digit ? '#' : c)) * 1099511628211u;
  }
  return h;
}

/// Mostly the text is one and the same.
bool same(std::string_view a, std::string_view b) { return a.size() == b.size() && (a.data() == b.data() || a == b); }

bool same_code(const Run& run, const ToldFrame& f) {
  return same(run.file, f.file) && same(run.function, f.function) && same(run.scope, f.scope);
}

class Lifetimes {
 public:
  Lifetimes(Recovery& r, const SlotUses& uses) : r_(r), calls_(r.program.calls), uses_(uses) {}

  void run() {
    open_frames();
    find_segments();
    find_results();
    find_skips();
    common_ = find_common_locals(r_, uses_);
    drops_.resize(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i)
      for (const SlotId s : calls_[i].outputs)
        if (s.valid() && !is_result_[s.at()]) place(static_cast<CallIndex>(i), s);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (drops_[i].size() > 1)
        std::ranges::stable_sort(drops_[i], [](const Drop& a, const Drop& b) {
          return std::tuple(-a.depth, a.when, a.place, -a.element) < std::tuple(-b.depth, b.when, b.place, -b.element);
        });
      calls_[i].drops.reserve(drops_[i].size());
      for (const Drop& d : drops_[i]) calls_[i].drops.push_back(d.slot);
    }
  }

 private:
  /// Lists are made in the function, after its arguments.
  static constexpr int place_of_lists = 0;

  enum class When : std::uint8_t { read, bound_again, exit };
  struct Drop {
    int depth;  ///< of the frame that holds the value; deeper frames end first
    When when;
    int place;  ///< at a frame's exit: among its locals
    SlotId slot;
    int element = 0;  ///< in a list: lists end with their last element first
  };

  static std::size_t at(CallIndex i) { return static_cast<std::size_t>(i); }
  const OpenFrames& frames(CallIndex i) const { return stacks_[stack_of_[at(i)]]; }

  /// The node itself, or, for one that the optimiser made without a trace (a merged Split), the first that reads it.
  NodeIndex with_trace(NodeIndex n) const {
    if (!r_.origins.has_text() || !r_.graph.node(n).metadata.stack_trace.empty()) return n;
    for (const ValueId o : r_.graph.node(n).outputs)
      if (o.valid())
        for (const NodeIndex reader : r_.graph.readers(o))
          if (!r_.graph.node(reader).metadata.stack_trace.empty()) return reader;
    return n;
  }

  /// Frames of a call as its node's metadata tells them; valid until the next call.
  const std::vector<ToldFrame>& told_of(std::size_t call) {
    const CallOrigin& origin = r_.origin(call);
    const NodeIndex node = with_trace(origin.node);
    const auto& scopes = r_.origins.scopes(node);
    std::vector<ToldFrame>& out = told_;
    out.clear();
    const std::vector<Frame>& trace = traces_.frames(r_.graph.node(node).metadata.stack_trace);
    if (trace.empty()) {
      for (const std::string_view s : scopes) out.push_back({.function = "forward", .scope = s});
    } else {
      std::size_t next = 0;
      for (const Frame& f : trace) {
        const bool forward = f.function == "forward" && next < scopes.size();
        const std::string_view scope = forward ? scopes[next] : next ? scopes[next - 1] : std::string_view{};
        next += forward;
        out.push_back({.file = f.file, .function = f.function, .scope = scope, .line = f.line, .source = f.source});
      }
    }
    for (int k = 0; k < origin.outer_frames && out.size() > 1; ++k) out.pop_back();
    if (!origin.statement.empty() && !out.empty()) {
      out.back().scope = origin.statement;
      if (out.size() > 1) out[out.size() - 2].line = origin.statement;
    }
    return out;
  }

  std::int32_t begin_run(const ToldFrame& f) {
    Run& run = runs_.emplace_back();
    run.file = f.file;
    run.function = f.function;
    run.scope = f.scope;
    run.kind = hash_without_indices(f.scope);
    return static_cast<std::int32_t>(runs_.size() - 1);
  }
  Run& run_of(const OpenFrame& f) { return runs_[static_cast<std::size_t>(f.id)]; }
  const Run& run_of(const OpenFrame& f) const { return runs_[static_cast<std::size_t>(f.id)]; }

  void open_frames() {
    stack_of_.resize(calls_.size());
    stacks_.reserve(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const bool told_before = i && r_.origin(i).node == r_.origin(i - 1).node &&
                               r_.origin(i).outer_frames == r_.origin(i - 1).outer_frames &&
                               r_.origin(i).statement == r_.origin(i - 1).statement;
      stack_of_[i] = told_before ? stack_of_[i - 1] : stacks_.size();
      if (told_before) continue;
      const OpenFrames* before = i ? &stacks_.back() : nullptr;
      const std::vector<ToldFrame>& told = told_of(i);
      OpenFrames now;
      now.reserve(told.size());
      const bool generated =
          !told.empty() && (told[0].file.starts_with("<eval") || told[0].file.starts_with("runtime_assert"));
      if (generated && before) {
        // Code that the exporter made: the frames around it are those already open.
        const auto& scopes = r_.origins.scopes(r_.origin(i).node);
        for (const OpenFrame& f : *before)
          if (std::ranges::find(scopes, run_of(f).scope) != scopes.end() && !run_of(f).file.starts_with("<eval"))
            now.push_back(f);
        now.push_back({.id = begin_run({.file = "<eval"})});
        stacks_.push_back(std::move(now));
        continue;
      }
      bool open = true;
      for (std::size_t k = 0; k < told.size(); ++k) {
        open = open && before && k < before->size() && same_code(run_of((*before)[k]), told[k]) &&
               (k == 0 || (*before)[k - 1].line == told[k - 1].line);
        now.push_back({open ? (*before)[k].id : begin_run(told[k]), told[k].line, told[k].source});
      }
      stacks_.push_back(std::move(now));
    }
  }

  void find_segments() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const auto& open = frames(static_cast<CallIndex>(i));
      for (std::size_t k = 0; k < open.size(); ++k) {
        Run& run = run_of(open[k]);
        run.last = static_cast<CallIndex>(i);
        const bool inner = k + 1 < open.size();
        const std::int32_t child = inner ? open[k + 1].id : -1;
        const std::size_t kind = inner ? run_of(open[k + 1]).kind : static_cast<std::size_t>(calls_[i].op.index) + 1;
        if (inner && open[k].source.empty() && (run.segments.empty() || run.segments.back().child != child))
          runs_of_module_[{open[k].id, run_of(open[k + 1]).scope}].push_back(static_cast<CallIndex>(i));
        const bool same_line = !run.segments.empty() && run.segments.back().line == open[k].line;
        const bool same_child = same_line && inner && run.segments.back().child == child;
        if (!same_line) run.statements.emplace(open[k].source);
        const bool several = run.statements->has_several();
        if (several && !same_child)
          run.statements->follow(called_name(static_cast<CallIndex>(i), k), reads_result_before(i));
        if (same_line) {
          Segment& s = run.segments.back();
          // The line runs again when the first kind of call that it makes comes again.
          const bool again = s.child != child && s.child_kind == kind;
          const auto comprehends = [&] { return s.last_kind == kind && run.statements->comprehends(); };
          if (several ? s.statement == run.statements->number() : !again || comprehends()) {
            s.last = static_cast<CallIndex>(i);
            s.child = child;
            s.last_kind = kind;
            continue;
          }
        }
        Segment s{static_cast<CallIndex>(i),
                  static_cast<CallIndex>(i),
                  open[k].line,
                  run.statements->statement(),
                  {},
                  child,
                  kind,
                  kind,
                  run.statements->number()};
        s.names = parse_statement(s.source).names;
        for (const std::string_view name : s.names) run.bindings[name].push_back(run.segments.size());
        run.segments.push_back(std::move(s));
      }
    }
  }

  bool reads_result_before(std::size_t i) const {
    bool reads = false;
    if (i > 0)
      for_each_read(calls_[i], [&](SlotId s) {
        reads = reads || std::ranges::find(calls_[i - 1].outputs, s) != calls_[i - 1].outputs.end();
      });
    return reads;
  }

  /// What frame k calls when call i runs: a module's attribute, a function, an operator.
  std::string_view called_name(CallIndex i, std::size_t k) const {
    const auto& open = frames(i);
    if (k + 1 >= open.size()) return r_.program.name_of(calls_[at(i)].op);
    const Run& inner = run_of(open[k + 1]);
    if (inner.function != "forward") return inner.function;
    std::string_view path = inner.scope;
    const std::string_view outer = run_of(open[k]).scope;
    if (path.starts_with(outer) && path.size() > outer.size())
      path.remove_prefix(outer.size() + (outer.empty() ? 0 : 1));
    return path.substr(0, path.find('.'));
  }

  void find_results() {
    is_result_.assign(uses_.slot_count(), false);
    for (const ProgramOutput& o : r_.program.outputs)
      if (o.slot.valid()) is_result_[o.slot.at()] = true;
  }

  /// Index after which a call that frame k makes by call j has returned.
  CallIndex returned(CallIndex j, std::size_t k) const {
    const auto& open = frames(j);
    return k + 1 >= open.size() ? j : run_of(open[k + 1]).last;
  }

  void place(CallIndex i, SlotId s) {
    const Readers readers = uses_.readers(s);
    const auto& open = frames(i);
    const int innermost = static_cast<int>(open.size());
    if (r_.origin(at(i)).local) return drop(last_call_of_function(i), {innermost, When::exit, 0, s});
    if (r_.origin(at(i)).temporary || open.empty())
      return drop(readers.empty() ? i : readers.back(), {innermost, When::read, 0, s});
    if (readers.empty() && open.size() > 1 && is_recurrent(calls_[at(i)]) && binds_states(open))
      return place_unread_state(i, s);
    if (calls_[at(i)].autocast_off && is_local_of_rotary(i, readers))
      return drop(last_call_of_rotary(i), {innermost - 1, When::exit, 0, s});
    const std::size_t k = home_of(i, readers);
    const int depth = static_cast<int>(k);
    const OpenFrame& home = open[k];
    Run& run = run_of(home);
    CallIndex last_use = readers.empty() ? i : 0;
    for (const CallIndex j : readers) last_use = std::max(last_use, returned(j, k));
    const CallIndex made = returned(i, k);

    const std::size_t own = segment_of(run, i);
    const Segment& segment = run.segments[own];
    const bool same_statement = !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](CallIndex j) {
      return segment.first <= j && j <= segment.last;
    });
    const bool no_source = home.source.empty();
    const bool in_list =
        no_source && !is_resized_for(i, readers) && std::any_of(readers.begin(), readers.end(), [&](CallIndex j) {
          return frames(j).size() == k + 1 && is_list_of_three(calls_[at(j)]);
        });
    if (const auto common = common_.find(s); common != common_.end()) {
      if (common->second.until < 0)
        return drop(std::max(run.last, last_use), {depth, When::exit, common->second.place, s});
      return drop(std::max(common->second.until, last_use), {depth, When::bound_again, 0, s});
    }
    if (no_source && is_skip(i, k, readers))
      return drop(std::max(last_use, run.last), {depth, When::exit, place_of_lists, s, i});
    if (no_source)
      if (const CallIndex block = end_of_decoder_block(i, k, readers); block >= last_use)
        return drop(block, {depth, When::bound_again, 0, s});
    if (readers.size() == 1 && frames(readers[0]).size() == k + 1 && is_own_statement(readers[0]))
      return drop(readers[0], {depth, When::bound_again, 0, s});
    if (is_argument(i, k, readers)) return drop(last_use, {depth, When::read, 0, s});
    if (same_statement && !in_list) {
      const bool named = k + 1 == open.size() && is_own_statement(i);
      if (named && !binds_what_it_reads(segment)) return drop(run.last, {depth, When::exit, -1, s});
      const bool keeps_name = named || (no_source && several_calls_read(readers, k));
      return drop(last_use, {depth, keeps_name ? When::bound_again : When::read, 0, s});
    }
    std::string_view name = name_of_cast(i, k, readers);
    if (name.empty() && segment.names.empty()) {
      if (no_source && !in_list)
        if (const CallIndex again = called_again(i, k, last_use); again >= 0)
          return drop(again, {depth, When::bound_again, 0, s});
      if (no_source && (in_list || several_calls_read(readers, k)))
        return drop(std::max(last_use, run.last), {depth, When::exit, 0, s});
      return drop(last_use, {depth, When::read, 0, s});
    }
    if (name.empty()) {
      // Several values of one statement take its names in order.
      const std::size_t order = taken_[{home.id, segment.first}]++;
      name = segment.names[std::min(order, segment.names.size() - 1)];
      if (order < segment.names.size() && is_appended(home.source, name))
        return drop(std::max(run.last, last_use), {depth, When::exit, place_of_lists, s, i});
    }
    const auto& bound = run.bindings[name];
    for (auto it = std::upper_bound(bound.begin(), bound.end(), own); it != bound.end(); ++it) {
      const Segment& again = run.segments[*it];
      if (again.first <= made) continue;
      if (again.last >= last_use) return drop(again.last, {depth, When::bound_again, 0, s});
      break;
    }
    drop(std::max(run.last, last_use), {depth, When::exit, place_of(run, name), s});
  }

  /// "x = block(pool(x))": what pool returns is the block's argument. Value i is read by `readers` in frame k.
  bool is_argument(CallIndex i, std::size_t k, Readers readers) const {
    const OpenFrame& frame = frames(i)[k];
    if (frame.source.empty() || readers.empty() || frames(i).size() != k + 1 || several_calls_read(readers, k))
      return false;
    const OpenFrames& reader = frames(readers.front());
    if (reader.size() <= k + 1 || reader[k].line != frame.line) return false;
    std::string_view op = r_.program.name_of(calls_[at(i)].op);
    op.remove_prefix(std::string_view("aten::").size());
    return calls_for_argument(frame.source, op.substr(0, op.find('.')));
  }

  /// A numbered module that frame k calls: "down.3" is the fourth of "down".
  struct Numbered {
    std::string_view list;
    std::int64_t index = -1;
  };
  Numbered numbered(CallIndex i, std::size_t k) const {
    if (frames(i).size() <= k + 1) return {};
    const std::string_view scope = run_of(frames(i)[k + 1]).scope;
    const std::size_t dot = scope.rfind('.');
    if (dot == std::string_view::npos) return {};
    return {scope.substr(0, dot), parse_int(scope.substr(dot + 1)).value_or(-1)};
  }

  /// Frame that the maker and all readers of a value have in common.
  std::size_t home_of(CallIndex i, Readers readers) const {
    const auto& open = frames(i);
    const auto shared = [&](std::size_t depth) {
      return std::all_of(readers.begin(), readers.end(), [&](CallIndex j) {
        return frames(j).size() > depth && frames(j)[depth].id == open[depth].id;
      });
    };
    std::size_t k = open.size() - 1;
    while (k > 0 && !shared(k)) --k;
    return k;
  }

  /// Of modules that are called in a loop, those whose results are joined again later.
  void find_skips() {
    if (r_.origins.has_text()) return;
    for (std::size_t s = 0; s < uses_.slot_count(); ++s) {
      const CallIndex i = uses_.maker(SlotId(s));
      const Readers readers = uses_.readers(SlotId(s));
      if (i < 0 || readers.size() < 2 || frames(i).empty()) continue;
      const std::size_t k = home_of(i, readers);
      const Numbered module = numbered(i, k);
      if (module.index < 0 || !several_calls_read(readers, k)) continue;
      const bool joined = std::any_of(readers.begin(), readers.end(), [&](CallIndex j) {
        return frames(j).size() == k + 1 && joins_earlier(calls_[at(j)], j);
      });
      if (joined) skips_[{frames(i)[k].id, module.list}].insert(module.index);
    }
  }

  /// "for d in self.down: x = d(pool(x)); skips.append(x)": a list holds the results of all modules of the loop, of the
  /// last one too.
  bool is_skip(CallIndex i, std::size_t k, Readers readers) const {
    const Numbered module = numbered(i, k);
    if (module.index < 0) return false;
    const auto found = skips_.find({frames(i)[k].id, module.list});
    if (found == skips_.end() || found->second.size() < 2) return false;
    const std::int64_t last = *found->second.rbegin();
    const auto from_first = static_cast<std::int64_t>(found->second.size()) == last + 1;
    if (found->second.contains(module.index)) return several_calls_read(readers, k);
    return from_first && module.index == last + 1 && returned(i, k) == i;
  }

  bool is_recurrent(const Call& c) const {
    const std::string& op = r_.program.name_of(c.op);
    return op == "aten::lstm.input" || op == "aten::gru.input" || op.starts_with("aten::rnn_");
  }

  /// Whether the line that calls the module names more than the sequence; without lines most do.
  static bool binds_states(const OpenFrames& open) {
    const std::string_view caller = open[open.size() - 2].source;
    return open.back().source.empty() || parse_statement(caller).names.size() > 1;
  }

  /// "x, _ = self.lstm(x)": the name keeps the state until the caller's next such line, or its end.
  void place_unread_state(CallIndex i, SlotId s) {
    const auto& open = frames(i);
    const std::size_t k = open.size() - 2;
    const CallIndex end = run_of(open[k]).last;
    for (CallIndex j = i + 1; j <= end; ++j)
      if (frames(j).size() == k + 2 && frames(j)[k].id == open[k].id && is_recurrent(calls_[at(j)]))
        return drop(returned(j, k), {static_cast<int>(k), When::bound_again, 0, s});
    drop(end, {static_cast<int>(k), When::exit, 0, s});
  }

  /// Index of the segment that call i belongs to.
  static std::size_t segment_of(const Run& run, CallIndex i) {
    const auto after = std::upper_bound(run.segments.begin(), run.segments.end(), i,
                                        [](CallIndex c, const Segment& x) { return c < x.first; });
    return static_cast<std::size_t>(after - run.segments.begin()) - (after != run.segments.begin());
  }

  /// CPython clears a frame's locals in the order in which its code names them first, arguments before. A name that is
  /// read before it is bound is an argument.
  int place_of(Run& run, std::string_view name) const {
    const auto [it, is_new] = run.places.try_emplace(name, 0);
    if (!is_new) return it->second;
    const auto& bound = run.bindings[name];
    const std::size_t first = bound.empty() ? 0 : bound.front();
    for (std::size_t i = 0; i <= first && i < run.segments.size(); ++i)
      if (reads_variable(read_part(run.segments[i].source), name)) return it->second = -1;
    return it->second = static_cast<int>(first);
  }

  /// "x = x * …".
  static bool binds_what_it_reads(const Segment& segment) {
    return std::any_of(segment.names.begin(), segment.names.end(),
                       [&](std::string_view name) { return reads_variable(read_part(segment.source), name); });
  }

  /// Whether call i is a cast that an export of another dtype lacks.
  bool is_added_cast(CallIndex i) const {
    return r_.program.name_of(calls_[at(i)].op) == "aten::to.dtype" && !r_.graph.is(r_.origin(at(i)).node, "Cast");
  }

  /// Whether call i is a cast that an export of another dtype lacks and the line it stands at does not tell of: a
  /// statement before, "x = x.to(…)".
  bool is_own_statement(CallIndex i) const {
    if (!is_added_cast(i) || frames(i).empty()) return false;
    const std::string_view source = frames(i).back().source;
    const auto tells = [&](std::string_view word) { return source.find(word) != std::string_view::npos; };
    return !source.empty() && !tells(".to(") && !tells("type_as(") && !tells(".type(") && !tells(".float(") &&
           !tells(".half(") && !tells(".bfloat16(") && !tells("dtype");
  }

  /// A cast that an export of another dtype lacks stands in the first statement that reads it, but "x = x.to(…)" made
  /// it: its name is the variable that the statements reading it have in common.
  std::string_view name_of_cast(CallIndex i, std::size_t k, Readers readers) const {
    if (readers.size() < 2 || !is_added_cast(i)) return {};
    const auto source = [&](CallIndex j) {
      return frames(j).size() > k ? read_part(frames(j)[k].source) : std::string_view{};
    };
    const std::string_view first = source(readers.front()), last = source(readers.back());
    if (first.data() == last.data()) return {};
    std::string_view name;
    for_each_variable(first, [&](std::string_view v) {
      if (name.empty() && v != "self" && v != "torch" && reads_variable(last, v)) name = v;
    });
    return name;
  }

  /// "x = d(x); s.append(x)": the list holds it as long as the frame runs.
  static bool is_appended(std::string_view source, std::string_view name) {
    constexpr std::string_view call = ".append(";
    const std::size_t at = source.find(call);
    return at != std::string_view::npos && source.substr(at + call.size()).starts_with(name) &&
           source.substr(at + call.size() + name.size()).starts_with(")");
  }

  /// Last call of the helper function that call i belongs to.
  CallIndex last_call_of_function(CallIndex i) const {
    CallIndex j = i;
    while (at(j) + 1 < calls_.size() && r_.origin(at(j) + 1).temporary &&
           r_.origin(at(j) + 1).node == r_.origin(at(i)).node)
      ++j;
    return j;
  }

  /// A rotary embedding's frequencies and angles are locals of its forward; what cos and sin return before they are
  /// scaled is a temporary.
  CallIndex last_call_of_rotary(CallIndex i) const {
    CallIndex j = i;
    while (at(j) + 1 < calls_.size() && calls_[at(j) + 1].autocast_off &&
           calls_[at(j) + 1].module == calls_[at(i)].module)
      ++j;
    return j;
  }
  bool is_local_of_rotary(CallIndex i, Readers readers) const {
    const std::string& op = r_.program.name_of(calls_[at(i)].op);
    if (readers.empty() || readers.back() > last_call_of_rotary(i)) return false;
    return op != "aten::cos" && op != "aten::sin";
  }

  bool is_list_of_three(const Call& c) const {
    const std::string& op = r_.program.name_of(c.op);
    if ((op != "aten::cat" && op != "aten::stack") || c.args.empty()) return false;
    const auto* parts = std::get_if<Slots>(&c.args[0]);
    return parts && parts->size() >= 3;
  }

  /// "for …: k = f(y); y = y + k": the call of the same module after which its result's name is bound anew; -1: frame k
  /// makes none after call `from`.
  CallIndex called_again(CallIndex i, std::size_t k, CallIndex from) const {
    if (frames(i).size() <= k + 1) return -1;
    const auto runs = runs_of_module_.find({frames(i)[k].id, run_of(frames(i)[k + 1]).scope});
    if (runs == runs_of_module_.end()) return -1;
    const auto next = std::upper_bound(runs->second.begin(), runs->second.end(), from);
    return next == runs->second.end() ? -1 : returned(*next, k);
  }

  bool resizes(CallIndex i) const {
    const std::string& op = r_.program.name_of(calls_[at(i)].op);
    return op.starts_with("aten::upsample_") || op.starts_with("aten::conv_transpose");
  }

  /// "cat([skip, other, self.up(x)])": the one that was resized for the others has no name.
  bool is_resized_for(CallIndex i, Readers readers) const {
    if (readers.size() != 1 || !resizes(i)) return false;
    const auto* parts =
        calls_[at(readers[0])].args.empty() ? nullptr : std::get_if<Slots>(&calls_[at(readers[0])].args[0]);
    return parts && std::count_if(parts->begin(), parts->end(), [&](SlotId part) {
                      return part.valid() && uses_.maker(part) >= 0 && resizes(uses_.maker(part));
                    }) == 1;
  }

  bool several_calls_read(Readers readers, std::size_t k) const {
    std::int64_t first = 0;
    bool any = false;
    for (const CallIndex j : readers) {
      const std::int64_t call = frames(j).size() > k + 1 ? frames(j)[k + 1].id : -1 - static_cast<std::int64_t>(j);
      if (any && call != first) return true;
      first = call;
      any = true;
    }
    return false;
  }

  /// "x = block(cat([skip, up(x)]))", a decoder's usual line, or a module that gets x and the skip: x keeps its value
  /// until the block has returned. Value i is read by `readers` in frame k; -1 where it is no such line.
  CallIndex end_of_decoder_block(CallIndex i, std::size_t k, Readers readers) const {
    if (readers.size() != 1 || frames(readers[0]).size() <= k + 1) return -1;
    const Call& up = calls_[at(returned(readers[0], k))];
    if (up.outputs.size() != 1 || !up.outputs[0].valid()) return -1;
    const Readers joined = uses_.readers(up.outputs[0]);
    if (joined.size() != 1 || frames(joined[0]).size() != k + 1 || !joins_earlier(calls_[at(joined[0])], i)) return -1;
    const Readers block = uses_.readers(calls_[at(joined[0])].outputs[0]);
    const bool one_call = !several_calls_read(block, k) && !block.empty() && frames(block[0]).size() > k + 1;
    return one_call ? returned(block[0], k) : -1;
  }

  /// Whether a call concatenates two values, one of them made before call i.
  bool joins_earlier(const Call& c, CallIndex i) const {
    if (r_.program.name_of(c.op) != "aten::cat" || c.args.empty()) return false;
    const auto* parts = std::get_if<Slots>(&c.args[0]);
    if (!parts || parts->size() != 2) return false;
    return std::any_of(parts->begin(), parts->end(), [&](SlotId part) { return uses_.maker(part) < i; });
  }

  void drop(CallIndex i, Drop d) { drops_[at(i)].push_back(d); }

  struct TakenHash {
    std::size_t operator()(const std::pair<std::int32_t, CallIndex>& p) const {
      return std::hash<std::int64_t>{}((static_cast<std::int64_t>(p.first) << 32) | p.second);
    }
  };

  Recovery& r_;
  std::vector<Call>& calls_;
  const SlotUses& uses_;
  StackTraceReader traces_;
  std::vector<ToldFrame> told_;
  std::vector<OpenFrames> stacks_;
  std::vector<std::size_t> stack_of_;  ///< by call: the frames open then
  std::vector<Run> runs_;
  CommonLocals common_;
  /// First calls of each run of a module in a frame, where the file has no source lines.
  std::map<std::pair<std::int32_t, std::string_view>, std::vector<CallIndex>> runs_of_module_;
  std::map<std::pair<std::int32_t, std::string_view>, std::set<std::int64_t>> skips_;  ///< by run and list of modules
  std::vector<bool> is_result_;
  std::vector<std::vector<Drop>> drops_;
  std::unordered_map<std::pair<std::int32_t, CallIndex>, std::size_t, TakenHash> taken_;
};

}  // namespace

namespace {

/// Without source lines it cannot be told how long a branch's result keeps its name: at most two values that several
/// calls read are alive longer than said.
void say_lifetimes_by_scope(Recovery& r) {
  const GraphView& g = r.graph;
  std::int64_t largest = 0, second = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const ValueId v = g.output(static_cast<NodeIndex>(i));
    if (!v.valid() || !is_float(g.value(v).dtype) || g.readers(v).size() < 2) continue;
    second = std::max(second, std::min(largest, g.value(v).count()));
    largest = std::max(largest, g.value(v).count());
  }
  r.diagnose("lifetime-by-scope", Severity::info,
             "the file has no source lines; values live as long as their modules' scopes tell",
             bytes_of(DType::f32, largest) + bytes_of(DType::f32, second));
}

}  // namespace

void find_lifetimes(Recovery& r, const SlotUses& uses) {
  Lifetimes(r, uses).run();
  if (!r.origins.has_text()) say_lifetimes_by_scope(r);
}

}  // namespace headroom::recovery
