#include "estimator/report/advice_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/plan/command.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

std::string card_name(const Scenario& s) {
  return s.device.name.empty() ? "a card of " + human(s.device.total_bytes) : s.device.name;
}

std::string plural(std::size_t n, const std::string& what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

/// The figures that the step stands on.
struct Reached {
  Bytes allocated, reserved;
};

template <class F>
void for_each_step(const Advice& a, F&& f) {
  Reached before{a.base.peak_allocated, a.base.peak_reserved};
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    f(i + 1, a.steps[i], before);
    if (a.steps[i].kept) before = {a.steps[i].together.allocated, a.steps[i].together.reserved};
  }
}

}  // namespace

std::string cost_text(const ChangeCost& c) {
  return "compute: " + c.compute + "; accuracy: " + c.accuracy + "; effort: " + c.effort;
}

std::string flags_text(const Scenario& before, const Scenario& after) {
  const ChangedFlags changed = changed_flags(before, after);
  std::string out = command_text(changed.add);
  for (const auto& f : changed.leave_away) out += (out.empty() ? "without " : ", without ") + f;
  return out;
}

std::string chosen_sentence(const Advice& a) {
  if (!a.chosen) return "name a card (--gpu, --memory): the answer then ends with the cheapest changes that fit it";
  const ChangedRun& run = a.chosen->run;
  const std::string card = card_name(run.scenario);
  if (!*run.fits)
    return "nothing here fits " + card + ": the nearest, with " + plural(a.chosen->rungs.size(), "change") + ", is " +
           human(Bytes() - run.spare) + " too large";
  if (a.chosen->rungs.empty()) return "fits " + card + " as it is: " + human(run.spare) + " to spare";
  return "fits " + card + " with " + plural(a.chosen->rungs.size(), "change") + ": " + human(run.spare) + " to spare";
}

std::string advice_table(const Advice& a, const TableStyle& style) {
  const Text text(style);
  const auto width = static_cast<std::size_t>(std::clamp(style.width, 60, 120));
  std::string out = text.bold(clipped(a.base.model.name, width)) + "\n";
  out += text.dim(wrapped(printable(scenario_line(a.base), 300), width, 0, "")) + "\n";

  out += text.dim(wrapped("alone, on top: what a step makes of the reserved peak, by itself and after the steps before",
                          width, 0, "")) +
         "\n";
  const std::size_t titles = width - 44;
  out += text.bold(fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}", "what to change", titles, "alone", "on top",
                               "allocated", "reserved")) +
         "\n";
  out +=
      "  " + fit("as it is", titles - 2) +
      fmt::format("  {:>9}  {:>9}  {:>9}  {:>9}\n", "", "", human(a.base.peak_allocated), human(a.base.peak_reserved));
  for_each_step(a, [&](std::size_t n, const AdviceStep& s, const Reached& before) {
    const std::string alone = signed_size(s.alone.reserved - a.base.peak_reserved);
    const std::string on_top = signed_size(s.together.reserved - before.reserved);
    const std::string lead = fmt::format("{:>2}  ", n);
    std::string title = wrapped(s.rung.title, titles, 4, lead);
    // The figures stand behind the title's first line.
    const auto end = title.find('\n');
    const std::string first = title.substr(0, end), rest = title.substr(end);
    out += "\n" + (s.kept ? text.bold(first) : text.dim(first)) +
           std::string(titles - std::min(titles, columns(first)), ' ') +
           fmt::format("  {:>9}  {:>9}  {:>9}  {:>9}", alone, on_top, human(s.together.allocated),
                       human(s.together.reserved)) +
           rest;
    if (!s.kept && s.alone.reserved >= a.base.peak_reserved) {
      out += text.dim("    saves nothing here") + "\n";
      return;
    }
    if (!s.kept) out += text.dim("    saves nothing on top of the steps before") + "\n";
    if (!s.rung.reason.empty()) out += text.dim(wrapped(s.rung.reason, width, 4, "    "));
    out += text.dim(wrapped(cost_text(s.rung.cost), width, 4, "    "));
    for (const std::string& line : s.rung.code) out += text.colour(114, "      " + printable(line, 400)) + "\n";
    out += wrapped("headroom: " + flags_text(a.base.scenario, s.alone.scenario), width, 6, "    ");
  });

  if (a.validation)
    out += "\n" + wrapped("validation under torch.no_grad() takes " + human(a.validation->allocated) + " allocated, " +
                              human(a.validation->reserved) + " reserved (--task infer); without it, a forward keeps " +
                              "what backward would need",
                          width, 2, "  ");
  if (!a.left_out.empty() || !a.unmodelled.empty()) out += "\n" + text.bold("not simulated") + "\n";
  for (const LeftOut& l : a.left_out) out += wrapped(l.title + ": " + printable(l.why, 300), width, 4, "  ");
  for (const Unmodelled& u : a.unmodelled)
    out += wrapped(u.title + " " + u.what + " (" + human(u.acts_on) + "): not modelled yet", width, 4, "  ");

  const std::string verdict = chosen_sentence(a);
  out += "\n" + (!a.chosen  ? text.dim(wrapped(verdict, width, 2, "  "))
                 : a.fits() ? text.good(wrapped(verdict, width, 2, "  "))
                            : text.bad(wrapped(verdict, width, 2, "  ")));
  if (a.chosen && !a.chosen->rungs.empty()) {
    for (const Rung& r : a.chosen->rungs) out += wrapped(r.title, width, 6, "    - ");
    out += fmt::format("    {} allocated, {} reserved, {} device\n", human(a.chosen->run.allocated),
                       human(a.chosen->run.reserved), human(a.chosen->run.device));
    out += wrapped(estimate_command(a.base, a.chosen->run.scenario), width, 6, "    ");
  }
  return out;
}

std::string advice_json(const Advice& a) {
  using nlohmann::ordered_json;
  const auto run = [](const ChangedRun& r) {
    ordered_json j{{"flags", flags_of(r.scenario)},
                   {"peak",
                    {{"allocated_bytes", r.allocated.count()},
                     {"reserved_bytes", r.reserved.count()},
                     {"device_bytes", r.device.count()}}}};
    if (r.fits) {
      j["fits"] = *r.fits;
      j["spare_bytes"] = r.spare.count();
    }
    return j;
  };
  const auto saved = [](const Reached& before, const ChangedRun& r) -> ordered_json {
    return {{"allocated_bytes", (before.allocated - r.allocated).count()},
            {"reserved_bytes", (before.reserved - r.reserved).count()}};
  };
  ordered_json j = json_head();
  j["model"] = {{"name", a.base.model.name}, {"parameters", a.base.model.parameters}};
  j["base"] = run(
      {a.base.scenario, a.base.peak_allocated, a.base.peak_reserved, a.base.peak_device, a.base.fits, a.base.spare});
  j["steps"] = ordered_json::array();
  for_each_step(a, [&](std::size_t, const AdviceStep& s, const Reached& before) {
    const ChangedFlags changed = changed_flags(a.base.scenario, s.alone.scenario);
    ordered_json row{{"key", s.rung.key},
                     {"title", s.rung.title},
                     {"cost",
                      {{"compute", s.rung.cost.compute},
                       {"accuracy", s.rung.cost.accuracy},
                       {"effort", s.rung.cost.effort},
                       {"weight", s.rung.cost.weight}}},
                     {"reason", s.rung.reason},
                     {"code", s.rung.code},
                     {"add", changed.add},
                     {"leave_away", changed.leave_away},
                     {"kept", s.kept}};
    row["alone"] = run(s.alone);
    row["alone"]["saved"] = saved({a.base.peak_allocated, a.base.peak_reserved}, s.alone);
    row["together"] = run(s.together);
    row["together"]["saved"] = saved(before, s.together);
    j["steps"].push_back(std::move(row));
  });
  if (a.validation) j["validation"] = run(*a.validation);
  j["left_out"] = ordered_json::array();
  for (const LeftOut& l : a.left_out) j["left_out"].push_back({{"key", l.key}, {"title", l.title}, {"why", l.why}});
  j["unmodelled"] = ordered_json::array();
  for (const Unmodelled& u : a.unmodelled)
    j["unmodelled"].push_back(
        {{"key", u.key}, {"title", u.title}, {"what", u.what}, {"acts_on_bytes", u.acts_on.count()}});
  if (a.chosen) {
    j["chosen"] = run(a.chosen->run);
    j["chosen"]["keys"] = ordered_json::array();
    for (const Rung& r : a.chosen->rungs) j["chosen"]["keys"].push_back(r.key);
    j["chosen"]["sentence"] = chosen_sentence(a);
  }
  return json_text(j);
}

std::string advice_csv(const Advice& a) {
  std::string out =
      "step,key,title,flags,alone_allocated_bytes,alone_reserved_bytes,together_allocated_bytes,"
      "together_reserved_bytes,kept,compute,accuracy,effort\n";
  for_each_step(a, [&](std::size_t n, const AdviceStep& s, const Reached&) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", n, csv_field(s.rung.key), csv_field(s.rung.title),
                       csv_field(flags_text(a.base.scenario, s.alone.scenario)), s.alone.allocated.count(),
                       s.alone.reserved.count(), s.together.allocated.count(), s.together.reserved.count(),
                       s.kept ? "yes" : "no", csv_field(s.rung.cost.compute), csv_field(s.rung.cost.accuracy),
                       csv_field(s.rung.cost.effort));
  });
  return out;
}

std::string advice_markdown(const Advice& a) {
  std::string out = fmt::format("### {}: what to change\n\n{}\n\n", markdown_text(a.base.model.name),
                                markdown_text(scenario_line(a.base)));
  out += "| | change | reserved, alone | on top | allocated | reserved |\n|---:|---|---:|---:|---:|---:|\n";
  out += fmt::format("| | as it is | | | {} | {} |\n", human(a.base.peak_allocated), human(a.base.peak_reserved));
  for_each_step(a, [&](std::size_t n, const AdviceStep& s, const Reached& before) {
    out += fmt::format("| {} | {}{} | {} | {} | {} | {} |\n", n, markdown_text(s.rung.title),
                       s.kept ? "" : " (not kept)", signed_size(s.alone.reserved - a.base.peak_reserved),
                       signed_size(s.together.reserved - before.reserved), human(s.together.allocated),
                       human(s.together.reserved));
  });
  out += "\n**" + markdown_text(chosen_sentence(a)) + "**\n";
  if (a.chosen && !a.chosen->rungs.empty()) {
    out += "\n";
    for (const Rung& r : a.chosen->rungs) out += "- " + markdown_text(r.title) + "\n";
    out += "\n    " + estimate_command(a.base, a.chosen->run.scenario) + "\n";
  }
  for_each_step(a, [&](std::size_t n, const AdviceStep& s, const Reached&) {
    out += fmt::format("\n{}. {}\n\n   {}\n", n, markdown_text(s.rung.title), markdown_text(cost_text(s.rung.cost)));
    if (!s.rung.reason.empty()) out += "   " + markdown_text(s.rung.reason) + "\n";
    out += "\n";
    for (const std::string& line : s.rung.code) out += "       " + printable(line, 400) + "\n";
    out += "\n   " + markdown_text(flags_text(a.base.scenario, s.alone.scenario)) + "\n";
  });
  return out;
}

}  // namespace headroom::report
