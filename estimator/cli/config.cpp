#include "estimator/cli/config.h"

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/read/mapped_file.h"

namespace headroom::cli {
namespace {

constexpr std::size_t largest_file = 1 << 20;
constexpr std::string_view model_key = "model";

class ConfigReader {
 public:
  explicit ConfigReader(const std::string& path)
      : path_(path), folder_(std::filesystem::path(path).parent_path()), root_(parsed()) {}

  std::vector<ConfiguredScenario> scenarios() {
    for (const auto& [key, node] : root_)
      if (key != "defaults" && key != "scenario") throw unknown(key, {"defaults", "scenario"}, "table");
    const toml::node* all = root_.get("scenario");
    const toml::node* defaults = root_.get("defaults");
    if (!all || !all->is_table() || all->as_table()->empty())
      throw bad_input("holds no scenario", path_, "for example [scenario.pretrain] with model = \"model.onnx\"");
    if (defaults && !defaults->is_table()) throw wrong(*defaults, "defaults is a table: [defaults]");
    std::vector<ConfiguredScenario> out;
    for (const auto& [key, node] : *all->as_table()) {
      if (!node.is_table()) throw wrong(node, "a scenario is a table: [scenario." + std::string(key.str()) + "]");
      ConfiguredScenario& s = out.emplace_back();
      s.name = key.str();
      s.line = line_of(node);
      s.options.command = "estimate";
      const toml::table& own = *node.as_table();
      if (defaults) apply(s.options, *defaults->as_table(), own);
      apply(s.options, own, {});
      if (s.options.files.empty())
        throw wrong(node, "scenario '" + s.name + "' names no model", "model = \"model.onnx\"");
    }
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.line < b.line; });
    return out;
  }

 private:
  toml::table parsed() const {
    const MappedFile file(path_);
    if (file.bytes().size() > largest_file) throw bad_input("is larger than 1 MiB", path_);
    try {
      return toml::parse(file.bytes(), path_);
    } catch (const toml::parse_error& e) {
      throw bad_input(std::string(e.description()), at(static_cast<int>(e.source().begin.line)));
    }
  }

  std::string at(int line) const { return path_ + ":" + std::to_string(line); }
  static int line_of(const toml::node& n) { return static_cast<int>(n.source().begin.line); }
  Error wrong(const toml::node& n, std::string what, std::string hint = {}) const {
    return bad_input(std::move(what), at(line_of(n)), std::move(hint));
  }
  Error unknown(const toml::key& key, const std::vector<std::string_view>& known, const std::string& what) const {
    const auto near = nearest(key.str(), known);
    std::string all;
    for (const auto k : known) all += (all.empty() ? "" : ", ") + std::string(k);
    return bad_input("there is no " + what + " '" + printable(key.str()) + "'",
                     at(static_cast<int>(key.source().begin.line)),
                     near.empty() ? "there are: " + all : "did you mean '" + std::string(near) + "'?");
  }

  /// The flags that a scenario may hold.
  static bool holds(const Flag& f) { return (f.on & on_estimate) != 0 && f.group != "Output"; }

  /// `table`, but for the keys that `replaced` gives.
  void apply(Options& o, const toml::table& table, const toml::table& replaced) const {
    std::vector<std::string_view> known{model_key};
    for (const Flag& f : flags())
      if (holds(f)) known.push_back(f.name);
    for (const auto& [key, node] : table) {
      if (key == model_key) {
        if (!node.is_string()) throw wrong(node, "model is the path of a file, in quotes");
        o.files = {beside(**node.as_string())};
        continue;
      }
      const auto flag =
          std::find_if(flags().begin(), flags().end(), [&](const Flag& f) { return holds(f) && f.name == key.str(); });
      if (flag == flags().end()) throw unknown(key, known, "key");
      if (!replaced.contains(key.str())) set(o, *flag, node);
    }
  }

  /// Files are named from where the config stands.
  std::string beside(std::string_view file) const { return (folder_ / file).string(); }

  void set(Options& o, const Flag& f, const toml::node& node) const {
    const auto give = [&](const std::string& value) {
      try {
        f.set(o, value.ends_with(".json") ? beside(value) : value);
      } catch (const Error& e) {
        throw wrong(node, e.what(), e.hint());
      }
    };
    const auto text = [&](const toml::node& n) -> std::string {
      if (n.is_string()) return **n.as_string();
      if (n.is_integer()) return std::to_string(**n.as_integer());
      throw wrong(n, std::string(f.name) + " wants " + std::string(f.argument) + " in quotes, or a whole number");
    };
    if (f.argument.empty()) {
      if (!node.is_boolean()) throw wrong(node, std::string(f.name) + " is true or false");
      if (**node.as_boolean()) give({});
    } else if (const toml::table* named = node.as_table(); named && f.argument.find('=') != std::string_view::npos) {
      for (const auto& [key, n] : *named) give(std::string(key.str()) + "=" + text(n));
    } else if (const toml::array* several = node.as_array(); several && f.repeatable) {
      for (const toml::node& n : *several) give(text(n));
    } else {
      give(text(node));
    }
  }

  const std::string& path_;
  std::filesystem::path folder_;
  toml::table root_;
};

}  // namespace

std::vector<ConfiguredScenario> read_config(const std::string& path) { return ConfigReader(path).scenarios(); }

}  // namespace headroom::cli
