#include "estimator/plan/difference.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "estimator/base/text.h"

namespace headroom {
namespace {

/// Of all that changed in the modules, what a line has to hold to be shown.
constexpr double shown_share = 0.02;
constexpr int deepest = 4;
/// Parts of a path that are told apart: files hold what they like.
constexpr std::size_t longest_path = 32;

std::int64_t magnitude(Bytes b) { return std::abs(b.count()); }

struct Tree {
  std::map<std::string, Tree> children;
  std::map<std::string, Change> categories;  ///< of the whole subtree
  std::set<std::string> modules;             ///< real paths that the node stands for
  Bytes before, after;

  Bytes change() const { return after - before; }
};

/// "*" for a number: siblings of a list are one line.
std::string part_name(std::string_view part) { return parse_int(part) ? "*" : std::string(part); }

void add(Tree& root, const Footprint::Owned& owned, Bytes Change::*side) {
  const auto count = [&](Tree& t) {
    t.categories[owned.category].*side += owned.bytes;
    (side == &Change::before ? t.before : t.after) += owned.bytes;
  };
  count(root);
  Tree* at = &root;
  std::string path;
  const bool statement = owned.module.empty() || owned.module.starts_with('(');
  auto parts = statement ? std::vector<std::string_view>{owned.module} : split(owned.module, '.');
  if (parts.size() > longest_path) parts.resize(longest_path);
  for (const std::string_view part : parts) {
    path += (path.empty() ? "" : ".") + std::string(part);
    at = &at->children[part_name(part)];
    at->modules.insert(path);
    count(*at);
  }
}

void lines(const Tree& tree, const std::string& path, int depth, std::int64_t least, std::vector<ModuleChange>& out) {
  std::vector<const std::pair<const std::string, Tree>*> children;
  for (const auto& child : tree.children)
    if (magnitude(child.second.change()) >= least) children.push_back(&child);
  std::stable_sort(children.begin(), children.end(), [](const auto* a, const auto* b) {
    return magnitude(a->second.change()) > magnitude(b->second.change());
  });
  for (const auto* child : children) {
    // A node that one child explains whole is not worth a line.
    std::string name = path.empty() ? child->first : path + "." + child->first;
    const Tree* at = &child->second;
    while (at->children.size() == 1 && at->children.begin()->second.change() == at->change()) {
      name += "." + at->children.begin()->first;
      at = &at->children.begin()->second;
    }
    const auto most = std::max_element(at->categories.begin(), at->categories.end(), [](const auto& a, const auto& b) {
      return magnitude(a.second.bytes()) < magnitude(b.second.bytes());
    });
    out.push_back({.change = {name, at->before, at->after},
                   .depth = depth,
                   .modules = static_cast<int>(at->modules.size()),
                   .category = most->first});
    if (depth + 1 < deepest) lines(*at, name, depth + 1, least, out);
  }
}

std::vector<ModuleChange> module_changes(const Footprint& before, const Footprint& after) {
  Tree root;
  for (const auto& o : before.owners) add(root, o, &Change::before);
  for (const auto& o : after.owners) add(root, o, &Change::after);
  std::int64_t all = 0;
  for (const auto& [name, child] : root.children) all += magnitude(child.change());
  std::vector<ModuleChange> out;
  const auto least = static_cast<std::int64_t>(shown_share * static_cast<double>(all));
  lines(root, {}, 0, std::max<std::int64_t>(least, 1), out);
  return out;
}

std::vector<Change> category_changes(const Footprint& before, const Footprint& after) {
  std::map<std::string, Change> by_name;
  for (const auto& c : before.categories) by_name[c.name].before += c.bytes;
  for (const auto& c : after.categories) by_name[c.name].after += c.bytes;
  std::vector<Change> out;
  for (auto& [name, change] : by_name) {
    if (change.before.count() == 0 && change.after.count() == 0) continue;
    change.name = name;
    out.push_back(change);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return magnitude(a.bytes()) > magnitude(b.bytes()); });
  return out;
}

/// A repeatable flag's values are one text.
std::vector<SettingChange> setting_changes(const Footprint& before, const Footprint& after) {
  std::vector<SettingChange> all;
  const auto take = [&all](const Footprint& f, std::string SettingChange::*side) {
    for (const auto& [name, value] : f.scenario) {
      auto at = std::find_if(all.begin(), all.end(), [&](const auto& s) { return s.name == name; });
      if (at == all.end()) at = all.insert(all.end(), {name, {}, {}});
      std::string& text = (*at).*side;
      text += (text.empty() ? "" : " ") + value;
    }
  };
  take(before, &SettingChange::before);
  take(after, &SettingChange::after);
  std::erase_if(all, [](const auto& s) { return s.before == s.after; });
  return all;
}

}  // namespace

Difference difference(Footprint before, Footprint after) {
  Difference d;
  d.settings = setting_changes(before, after);
  d.categories = category_changes(before, after);
  d.modules = module_changes(before, after);
  d.before = std::move(before);
  d.after = std::move(after);
  return d;
}

std::optional<Tolerance> parse_tolerance(std::string_view text) {
  text = trim(text);
  if (!text.ends_with('%')) {
    const auto bytes = parse_size(text);
    return bytes ? std::optional(Tolerance{.bytes = bytes}) : std::nullopt;
  }
  text = trim(text.substr(0, text.size() - 1));
  double percent = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (ec != std::errc{} || end != text.data() + text.size() || !(percent >= 0 && percent <= 1e6)) return std::nullopt;
  return Tolerance{.bytes = {}, .share = percent / 100};
}

bool exceeds(const Difference& d, const Tolerance& tolerance) {
  const auto over = [&](Bytes before, Bytes after) {
    const Bytes borne = tolerance.bytes.value_or(
        Bytes(static_cast<std::int64_t>(tolerance.share * static_cast<double>(before.count()))));
    return after - before > borne;
  };
  return over(d.before.allocated, d.after.allocated) || over(d.before.reserved, d.after.reserved);
}

}  // namespace headroom
