#include "estimator/cli/axes.h"

#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom::cli {
namespace {

constexpr std::size_t most_cells = 100'000;

std::vector<std::string> dimension_names(const Model& model) {
  std::vector<std::string> out;
  for (const GraphValue& input : model.graph().inputs)
    for (const Dim& d : input.type.dims)
      if (!d.param.empty() && std::find(out.begin(), out.end(), d.param) == out.end()) out.emplace_back(d.param);
  return out;
}

Error unknown_axis(std::string_view name, const std::vector<std::string>& dimensions) {
  std::vector<std::string> names = dimensions;
  for (const Flag& f : flags())
    if (sets_scenario(f.name)) names.emplace_back(f.name);
  const auto near = nearest(name, names);
  return usage_error("--over: '" + printable(name) + "' is no flag of the scenario and no dimension of the model", "",
                     near.empty()
                         ? "`headroom sweep --help` lists the flags, `headroom inspect --stage graph` the dimensions"
                         : "did you mean '" + printable(near) + "'?");
}

/// "4:64" (doubles) or "8:64:8" (counts), ends included.
void add_range(std::string_view text, std::vector<std::string>& out) {
  const auto parts = split(text, ':');
  std::vector<std::int64_t> n;
  for (const auto p : parts)
    if (const auto v = parse_int(p)) n.push_back(*v);
  if (n.size() != parts.size() || n.size() > 3 || n[0] < 1 || n[1] < n[0] || (n.size() == 3 && n[2] < 1))
    throw usage_error("--over: '" + printable(text) + "' is no range", "",
                      "4:64 is 4,8,16,32,64; 8:32:8 is 8,16,24,32");
  for (std::int64_t v = n[0]; v <= n[1]; v = n.size() == 3 ? checked_add(v, n[2]) : checked_mul(v, 2)) {
    out.push_back(std::to_string(v));
    if (out.size() > most_cells) throw usage_error("--over: '" + printable(text) + "' has too many values");
  }
}

/// Values that hold commas themselves are not lists: one a --over.
bool is_one_text(const Flag& f) { return f.argument == "TEXT" || f.argument.find(',') != std::string_view::npos; }

std::vector<std::string> values_of(const Flag& f, bool numbers, std::string_view text) {
  if (is_one_text(f)) return {std::string(text)};
  std::vector<std::string> out;
  for (const auto part : split(text, ',')) {
    if (numbers && part.find(':') != std::string_view::npos)
      add_range(part, out);
    else
      out.emplace_back(part);
  }
  return out;
}

}  // namespace

void Axis::give(Options& o, std::size_t value) const {
  const std::string& text = axis.values[value];
  if (!flag->argument.empty())
    flag->set(o, prefix + text);
  else if (text == "on")
    flag->set(o, {});
  else if (text != "off")
    throw usage_error("--over " + axis.name + ": a switch is on or off, not '" + printable(text) + "'");
}

std::vector<Axis> axes_of(const Options& o, const Model& model) {
  std::vector<Axis> out;
  const auto dimensions = dimension_names(model);
  const auto add = [&](std::string_view name, std::string_view text) {
    const Flag* flag = find_flag(name, on_sweep);
    const bool dimension = std::find(dimensions.begin(), dimensions.end(), name) != dimensions.end();
    const bool of_dim = !sets_scenario(name);
    if (of_dim && !dimension) throw unknown_axis(name, dimensions);
    if (of_dim) flag = find_flag("dim", on_sweep);
    const bool numbers = of_dim || flag->argument == "N";
    std::vector<std::string> values = values_of(*flag, numbers, text);
    const auto known = std::find_if(out.begin(), out.end(), [&](const Axis& a) { return a.axis.name == name; });
    if (known == out.end()) {
      out.push_back({.axis = {std::string(name), std::move(values), numbers},
                     .flag = flag,
                     .prefix = of_dim ? std::string(name) + "=" : ""});
    } else {
      known->axis.values.insert(known->axis.values.end(), values.begin(), values.end());
    }
  };
  for (const std::string& over : o.over) {
    const auto at = over.find('=');
    if (at == std::string::npos || at == 0)
      throw usage_error("--over wants AXIS=VALUE,VALUE,..., not '" + printable(over) + "'", "",
                        "for example --over batch=1,2,4:64 --over precision=fp32,amp-bf16");
    add(std::string_view(over).substr(0, at), std::string_view(over).substr(at + 1));
  }
  if (o.gpus.size() > 1)
    for (const std::string& gpu : o.gpus) add("gpu", gpu);
  if (out.empty())
    throw usage_error("headroom sweep wants an axis", "",
                      "for example --over batch=1,2,4:64 --over precision=fp32,amp-bf16");

  std::size_t cells = 1;
  for (const Axis& a : out) {
    cells *= a.axis.values.size();
    if (cells > most_cells)
      throw usage_error("the sweep has more than " + std::to_string(most_cells) + " cells", "", "give fewer values");
    // What a flag does not take is said before anything runs.
    for (std::size_t v = 0; v < a.axis.values.size(); ++v) {
      Options scratch;
      a.give(scratch, v);
    }
  }
  return out;
}

}  // namespace headroom::cli
