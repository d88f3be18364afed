#include "estimator/plan/checkpoint/module_ranges.h"

#include <algorithm>
#include <set>
#include <utility>

#include "estimator/base/text.h"

namespace headroom {

bool one_list(const std::vector<std::string>& modules) {
  const auto parent = [](const std::string& path) { return path.substr(0, path.rfind('.') + 1); };
  return std::all_of(modules.begin(), modules.end(), [&](const auto& m) {
    return !parent(m).empty() && parent(m) == parent(modules[0]) && parse_int(m.substr(parent(m).size())).has_value();
  });
}

ModuleRanges::ModuleRanges(const Program& p) : program_(p) {
  for (std::size_t c = 0; c < p.calls.size(); ++c)
    for (std::string_view path = p.module_path(p.calls[c].module); !path.empty(); path = parent(path)) {
      auto it = ranges_.find(path);
      if (it == ranges_.end()) it = ranges_.emplace(path, Range{c, c, 1}).first;
      if (it->second.end < c) ++it->second.calls;
      it->second.end = c + 1;
    }
  find_lists();
  find_values();
}

std::string_view ModuleRanges::parent(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::vector<std::string> ModuleRanges::of(std::size_t begin, std::size_t end) const {
  std::vector<std::string> out;
  while (begin < end) {
    std::string_view found;
    for (std::string_view path = program_.module_path(program_.calls[begin].module); !path.empty();
         path = parent(path)) {
      const Range& r = ranges_.find(path)->second;
      if (r.calls == 1 && r.begin == begin && r.end <= end) found = path;
    }
    if (found.empty()) return {};
    out.emplace_back(found);
    begin = ranges_.find(found)->second.end;
  }
  return out;
}

bool ModuleRanges::can_be_wrapped(std::size_t begin, std::size_t end) const {
  bool run = false;
  for (const Beginning& b : begins_[begin]) {
    if (b.end == end) return true;
    const auto& lists = lists_[end];
    run = run || (b.list >= 0 && std::find(lists.begin(), lists.end(), b.list) != lists.end());
  }
  const auto [newest, second] = latest_[end];
  const auto from = static_cast<std::ptrdiff_t>(begin);
  return run && newest >= from && second < from;
}

void ModuleRanges::find_lists() {
  begins_.resize(program_.calls.size() + 1);
  lists_.resize(program_.calls.size() + 1);
  std::vector<std::pair<Range, std::string_view>> modules;
  for (const auto& [path, range] : ranges_)
    if (range.calls == 1) modules.emplace_back(range, path);
  std::stable_sort(modules.begin(), modules.end(),
                   [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  std::map<std::pair<std::string_view, std::size_t>, std::int32_t> ending;  // by parent and end
  std::int32_t count = 0;
  for (const auto& [range, path] : modules) {
    const std::string_view list = parent(path);
    std::int32_t of = -1;
    if (!list.empty() && parse_int(path.substr(list.size() + 1))) {
      const auto before = ending.find({list, range.begin});
      of = before == ending.end() ? count++ : before->second;
      ending[{list, range.end}] = of;
      lists_[range.end].push_back(of);
    }
    begins_[range.begin].push_back({range.end, of});
  }
}

void ModuleRanges::find_values() {
  const std::size_t calls = program_.calls.size();
  std::vector<std::size_t> last(program_.slot_count());
  for (std::size_t c = 0; c < calls; ++c) for_each_read(program_.calls[c], [&](SlotId s) { last[s.at()] = c; });
  for (const ProgramOutput& o : program_.outputs) last[o.slot.at()] = calls;
  std::multiset<std::ptrdiff_t> alive;  // makers
  std::vector<std::vector<std::ptrdiff_t>> over(calls + 1);
  for (std::size_t c = 0; c <= calls; ++c) {
    auto& [newest, second] = latest_.emplace_back(std::array<std::ptrdiff_t, 2>{-1, -1});
    if (!alive.empty()) newest = *alive.rbegin();
    if (alive.size() > 1) second = *std::next(alive.rbegin());
    for (const std::ptrdiff_t maker : over[c]) alive.erase(alive.find(maker));
    if (c == calls) break;
    for (const SlotId s : program_.calls[c].outputs)
      if (s.valid() && last[s.at()] > c) {
        alive.insert(static_cast<std::ptrdiff_t>(c));
        over[last[s.at()]].push_back(static_cast<std::ptrdiff_t>(c));
      }
  }
}

}  // namespace headroom
