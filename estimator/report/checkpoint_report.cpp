#include "estimator/report/checkpoint_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

using nlohmann::ordered_json;

/// A Python string literal; names come from files.
std::string quoted(const std::string& name) { return ordered_json(printable(name)).dump(); }

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& n : names) out += (out.empty() ? "" : ", ") + quoted(n);
  return "[" + out + "]";
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& n : names) out += (out.empty() ? "" : ", ") + printable(n);
  return out;
}

ordered_json segment_json(const NamedSegment& s) {
  ordered_json j;
  if (s.modules.size() == 1)
    j["module"] = s.modules[0];
  else if (!s.modules.empty())
    j["modules"] = s.modules;
  else
    j["calls"] = {s.range.begin, s.range.end};
  if (!s.range.save.empty()) j["save"] = s.range.save;
  return j;
}

ordered_json placement_json(const SimulatedPlacement& p) {
  ordered_json j{{"name", p.name},
                 {"peak",
                  {{"allocated_bytes", p.allocated.count()},
                   {"reserved_bytes", p.reserved.count()},
                   {"device_bytes", p.device.count()}}},
                 {"recomputed", p.recomputed},
                 {"recomputed_work", p.work}};
  if (p.fits) {
    j["fits"] = *p.fits;
    j["spare_bytes"] = p.spare.count();
  }
  ordered_json segments = ordered_json::array();
  for (const NamedSegment& s : p.segments) {
    ordered_json one = segment_json(s);
    one["calls"] = {s.range.begin, s.range.end};
    one["in"] = s.in;
    one["inputs"] = s.inputs;
    one["outputs"] = s.outputs;
    segments.push_back(std::move(one));
  }
  j["segments"] = std::move(segments);
  return j;
}

std::string segments_text(const SimulatedPlacement& p) {
  if (p.segments.empty()) return "no checkpoints";
  return fmt::format("{} segment{}", p.segments.size(), p.segments.size() == 1 ? "" : "s");
}

/// "aten::mm" as Python names it.
std::string torch_op(const std::string& name) {
  const std::string of_aten = name.substr(name.find("::") + 2);
  return "torch.ops.aten." + of_aten + (of_aten.find('.') == std::string::npos ? ".default" : "");
}

std::string kept_lines(const std::vector<std::string>& save) {
  std::string out;
  for (const std::string& op : save) out += "    " + torch_op(op) + ",\n";
  return out;
}

/// A segment of each module, selective ones with the list that they keep.
std::string modules_code(const std::map<std::vector<std::string>, std::vector<std::string>>& modules_by_save) {
  const bool selective = !modules_by_save.rbegin()->first.empty();
  std::string out;
  if (selective)
    out +=
        "\n\ndef checkpoint_modules(model, names, keep=()):\n"
        "    \"\"\"Each of the modules is a segment whose results of the operators in `keep` are kept; parameters and\n"
        "    state_dict stay as they are.\"\"\"\n"
        "    options = {\"context_fn\": partial(create_selective_checkpoint_contexts, list(keep))} if keep else {}\n";
  else
    out +=
        "\n\ndef checkpoint_modules(model, names):\n"
        "    \"\"\"Each of the modules is a segment; parameters and state_dict stay as they are.\"\"\"\n";
  out += fmt::format(
      "    for name in names:\n"
      "        module = model.get_submodule(name)\n\n"
      "        def forward(*args, _run=module.forward, **kwargs):\n"
      "            return checkpoint(_run, *args, use_reentrant=False, {}**kwargs)\n\n"
      "        module.forward = forward\n\n\n",
      selective ? "**options, " : "");
  for (const auto& [save, modules] : modules_by_save) {
    out += "checkpoint_modules(model, " + list_of(modules);
    if (!save.empty()) out += ", keep=[\n" + kept_lines(save) + "]";
    out += ")\n";
  }
  return out;
}

}  // namespace

std::string checkpoint_code(const SimulatedPlacement& p) {
  std::map<std::vector<std::string>, std::vector<std::string>> alone;  // by what they keep
  std::vector<std::vector<std::string>> runs;
  std::map<std::vector<std::string>, std::string> keeping;  // what stretches keep, by name
  std::string definitions, stretches;
  for (const NamedSegment& s : p.segments) {
    if (s.modules.size() == 1) {
      alone[s.range.save].push_back(s.modules[0]);
    } else if (s.range.save.empty() && !s.modules.empty() && one_list(s.modules)) {
      runs.push_back(s.modules);
    } else {
      stretches += fmt::format("# In the forward of {}: from {} to {}", s.in.empty() ? "the model" : printable(s.in),
                               printable(s.first), printable(s.last));
      if (!s.modules.empty()) stretches += " (" + joined(s.modules) + ")";
      std::string keep;
      if (!s.range.save.empty()) {
        const auto [named, fresh] = keeping.try_emplace(s.range.save, fmt::format("keeping_{}", keeping.size() + 1));
        keep = ", context_fn=" + named->second;
        if (fresh)
          definitions += fmt::format("{} = partial(create_selective_checkpoint_contexts, [\n{}])\n", named->second,
                                     kept_lines(s.range.save));
      }
      stretches += fmt::format(", as\n#     {} = checkpoint(segment, {}, use_reentrant=False{})\n", joined(s.outputs),
                               joined(s.inputs), keep);
    }
  }
  const bool selective = std::ranges::any_of(p.segments, [](const NamedSegment& s) { return !s.range.save.empty(); });
  std::string out = selective ? "from functools import partial\n\nimport torch\n"
                                "from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts\n"
                              : "from torch.utils.checkpoint import checkpoint\n";
  if (!alone.empty()) out += modules_code(alone);
  if (!runs.empty()) {
    out +=
        "\n\ndef checkpoint_run(model, names):\n"
        "    \"\"\"The modules are one segment: each takes what the one before gives, and the same other "
        "arguments.\"\"\"\n"
        "    first, *others = [model.get_submodule(name) for name in names]\n"
        "    steps = [first.forward] + [module.forward for module in others]\n\n"
        "    def run(x, *args, **kwargs):\n"
        "        for step in steps:\n"
        "            x = step(x, *args, **kwargs)\n"
        "        return x\n\n"
        "    first.forward = lambda *args, **kwargs: checkpoint(run, *args, use_reentrant=False, **kwargs)\n"
        "    for module in others:\n"
        "        module.forward = lambda x, *args, **kwargs: x\n\n\n";
    for (const auto& r : runs) out += "checkpoint_run(model, " + list_of(r) + ")\n";
  }
  if (!definitions.empty()) out += "\n\n" + definitions;
  if (!stretches.empty()) out += "\n" + stretches;
  return out;
}

std::string checkpoint_plan_json(const SimulatedPlacement& p, std::size_t calls) {
  ordered_json j{{"schema_version", 1}, {"calls", calls}, {"segments", ordered_json::array()}};
  for (const NamedSegment& s : p.segments) j["segments"].push_back(segment_json(s));
  return json_text(j);
}

std::string checkpoint_json(const CheckpointAnswer& a) {
  ordered_json j = json_head();
  j["scenario"] = scenario_json(a.base.scenario);
  j["model"] = {{"name", a.base.model.name}, {"calls", a.calls}};
  j["forward"] = {{"flops", a.forward_flops}, {"bytes", a.forward_bytes}};
  j["exact"] = a.exact;
  j["cuts"] = a.cuts;
  j["placements"] = a.placements;
  j["baselines"] = ordered_json::array();
  for (const auto& p : a.baselines) j["baselines"].push_back(placement_json(p));
  j["front"] = ordered_json::array();
  for (const auto& p : a.front) j["front"].push_back(placement_json(p));
  if (a.chosen) {
    j["chosen"] = placement_json(*a.chosen);
    j["chosen"]["draws_random_numbers"] = a.dropout;
    j["chosen"]["updates_batch_norm_twice"] = a.batch_norm;
    j["code"] = checkpoint_code(*a.chosen);
    j["plan"] = ordered_json::parse(checkpoint_plan_json(*a.chosen, a.calls));
  }
  j["diagnostics"] = diagnostics_json(a.base.diagnostics);
  return json_text(j);
}

std::string checkpoint_table(const CheckpointAnswer& a, const TableStyle& style) {
  const Text text(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 60, 120));
  std::string out = text.bold(clipped(a.base.model.name, width)) + "\n";
  out += text.dim(wrapped(printable(scenario_line(a.base), 300), width, 0, "")) + "\n";
  const Bytes most = a.base.peak_allocated;
  const int bars = static_cast<int>(width) - 66;
  out += text.bold(fmt::format("{:<14} {:>10}  {:>10}  {:>11}  {}", "checkpoints", "allocated", "reserved",
                               "recomputed", "of forward and backward")) +
         "\n";
  const auto row = [&](const SimulatedPlacement& p) {
    out += fmt::format("  {:<12} {:>10}  {:>10}  {:>9.1f} %  {:<15}", p.name, human(p.allocated), human(p.reserved),
                       p.recomputed * 100, segments_text(p));
    const double share =
        most.count() > 0 ? static_cast<double>(p.allocated.count()) / static_cast<double>(most.count()) : 0;
    if (bars > 5) out += " " + text.colour(38, bar(std::min(share, 1.0), bars));
    out += "\n";
  };
  for (const auto& p : a.baselines) row(p);
  out += "\n";
  for (const auto& p : a.front) row(p);
  out +=
      text.dim(wrapped(fmt::format("{} of {} placements on the front, each simulated; {}", a.front.size(), a.placements,
                                   a.exact ? fmt::format("no other of all with {} cuts is better", a.cuts)
                                           : fmt::format("the best found among {} cuts", a.cuts)),
                       width, 2, "  "));
  if (!a.asked) {
    out += "\n" + wrapped("--memory, --gpu or --max-recompute choose one of them", width, 0, "");
    return out;
  }
  if (!a.chosen) {
    const auto least = std::min_element(a.front.begin(), a.front.end(),
                                        [](const auto& x, const auto& y) { return x.allocated < y.allocated; });
    out += "\n" + text.bad("nothing fits") + ": the lowest peak is " + human(least->allocated) + " allocated, " +
           human(least->device) + " on the device\n";
    return out;
  }
  const SimulatedPlacement& c = *a.chosen;
  std::string sentence =
      fmt::format("{}: {} allocated, {:.1f} % recomputed, {}", c.name == "planned" ? "chosen" : c.name,
                  human(c.allocated), c.recomputed * 100, segments_text(c));
  if (c.fits && *c.fits)
    sentence += c.frees_cache ? ", nothing to spare: cache is freed" : ", " + human(c.spare) + " to spare";
  out += "\n" + text.good(sentence) + "\n";
  if (c.segments.empty()) return out;
  out += "\n" + checkpoint_code(c);
  if (a.dropout)
    out +=
        "\n" + text.dim(wrapped("dropout: checkpoint() restores the generators (preserve_rng_state=True, the default), "
                                "so a rerun drops what the first run dropped",
                                width, 0, ""));
  if (std::ranges::any_of(c.segments, [](const NamedSegment& s) { return !s.range.save.empty(); }))
    out += "\n" +
           text.dim(wrapped("selective: PyTorch looks at every operator of such a segment in Python; where the card "
                            "waits for the CPU, that costs more time than is shown",
                            width, 0, ""));
  if (a.batch_norm)
    out += "\n" + text.dim(wrapped("batch norm: a segment's running statistics are updated twice a step; momentum "
                                   "1 - sqrt(1 - momentum) makes two updates one",
                                   width, 0, ""));
  return out;
}

std::string checkpoint_svg(const CheckpointAnswer& a) {
  constexpr double width = 720, height = 420, left = 90, top = 30, right = 690, bottom = 370;
  double most_work = 0.01, most_bytes = 1;
  const auto each = [&](const auto& f) {
    for (const auto& p : a.front) f(p);
    for (const auto& p : a.baselines) f(p);
  };
  each([&](const SimulatedPlacement& p) {
    most_work = std::max(most_work, p.recomputed);
    most_bytes = std::max(most_bytes, static_cast<double>(p.allocated.count()));
  });
  const auto x = [&](const SimulatedPlacement& p) { return left + (right - left) * p.recomputed / most_work; };
  const auto y = [&](const SimulatedPlacement& p) {
    return bottom - (bottom - top) * static_cast<double>(p.allocated.count()) / most_bytes;
  };
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<path d=\"M{} {}V{}H{}\" fill=\"none\" stroke=\"#444\"/>\n",
      width, height, html_text("Checkpoints of " + a.base.model.name), left, top, bottom, right);
  for (int k = 0; k <= 4; ++k) {
    const double at = bottom - (bottom - top) * k / 4;
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", left - 8, at + 4,
                       human(Bytes(static_cast<std::int64_t>(most_bytes * k / 4))));
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.1f} %</text>\n",
                       left + (right - left) * k / 4, bottom + 18, most_work * 100 * k / 4);
  }
  out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">recomputed, of forward and backward</text>\n",
                     (left + right) / 2, bottom + 38);
  std::string line;
  for (const auto& p : a.front) line += fmt::format("{:.1f},{:.1f} ", x(p), y(p));
  out += "<polyline fill=\"none\" stroke=\"#0087ff\" points=\"" + line + "\"/>\n";
  const auto dot = [&](const SimulatedPlacement& p, const char* colour) {
    out += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"><title>{}: {}, {:.1f} %</title></circle>\n", x(p),
        y(p), colour, p.name, human(p.allocated), p.recomputed * 100);
  };
  for (const auto& p : a.front) dot(p, "#0087ff");
  constexpr double line_height = 14;
  std::vector<double> labels;  // names of rules on the right, which may lie close together: one above the other
  for (const auto& p : a.baselines) {
    dot(p, "#d75f00");
    const bool on_the_right = x(p) > (left + right) / 2;
    double at = y(p) - 5;
    const auto taken = [&](double other) { return std::abs(other - at) < line_height; };
    while (on_the_right && std::any_of(labels.begin(), labels.end(), taken)) at -= line_height;
    if (on_the_right) labels.push_back(at);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x(p) + (on_the_right ? -7 : 7),
                       at, on_the_right ? "end" : "start", p.name);
  }
  return out + "</svg>\n";
}

}  // namespace headroom::report
