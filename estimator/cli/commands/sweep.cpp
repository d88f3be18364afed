#include "estimator/plan/sweep.h"

#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/axes.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/commands/documents.h"
#include "estimator/cli/output.h"
#include "estimator/cli/progress.h"
#include "estimator/report/sweep_report.h"

namespace headroom::cli {
namespace {

std::vector<const Metric*> metrics_of(const Options& o, std::size_t axes) {
  std::vector<const Metric*> out;
  std::vector<std::string_view> names;
  for (const Metric& m : metrics()) names.push_back(m.name);
  const auto add = [&](std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const auto near = nearest(name, names);
      throw usage_error(
          "--metric does not know '" + printable(name) + "'", "",
          near.empty() ? "`headroom sweep --help` lists them" : "did you mean '" + std::string(near) + "'?");
    }
    out.push_back(&metrics()[static_cast<std::size_t>(found - names.begin())]);
  };
  if (!o.metrics.empty())
    for (const std::string& name : o.metrics) add(name);
  else if (axes == 1)
    for (const auto* name : {"allocated", "reserved", "device"}) add(name);
  else
    add("device");
  return out;
}

}  // namespace

Sweep sweep_of(const Options& o, const std::vector<Axis>& axes) {
  Sweep sweep;
  sweep.base = o.scenario;
  Options shared = o;
  std::size_t cells = 1;
  for (const Axis& a : axes) {
    sweep.axes.push_back(a.axis);
    cells *= a.axis.values.size();
    if (a.axis.name == "gpu") shared.gpu.clear();
  }
  if (!shared.gpu.empty() || !shared.memory.empty()) sweep.base = scenario_of(shared);
  sweep.cells.resize(cells);
  for (std::size_t i = 0; i < cells; ++i) {
    Options cell = shared;
    const auto place = sweep.place(i);
    for (std::size_t a = 0; a < axes.size(); ++a) axes[a].give(cell, place[a]);
    try {
      sweep.cells[i].estimate.scenario = scenario_of(cell);
      note_not_modelled_yet(sweep.cells[i].estimate.scenario, sweep.diagnostics);
    } catch (const Error& e) {
      sweep.cells[i].error = e;
    }
  }
  return sweep;
}

int run_sweep(const Options& o) {
  const std::string& file = model_file(o);
  Estimator estimator{std::filesystem::path(file)};
  const std::vector<Axis> axes = axes_of(o, estimator.model());
  const std::vector<const Metric*> shown = metrics_of(o, axes.size());
  Sweep sweep = sweep_of(o, axes);
  sweep.model = std::filesystem::path(file).filename().string();
  {
    Progress progress(sweep.cells.size(), "cells");
    headroom::run_sweep(estimator, sweep,
                        {.threads = o.threads, .progress = [&progress](std::size_t done) { progress.show(done); }});
  }

  const auto answered = [](const SweepCell& c) { return !c.error; };
  const auto fits = [](const SweepCell& c) { return !c.error && c.estimate.fits.value_or(true); };
  if (std::none_of(sweep.cells.begin(), sweep.cells.end(), answered)) throw *sweep.cells[0].error;
  if (o.format == "json")
    write_result(report::sweep_json(sweep), o.output);
  else if (o.format == "csv")
    write_result(report::sweep_csv(sweep), o.output);
  else
    write_document(report::sweep_grids(sweep, shown), o);
  return static_cast<int>(std::any_of(sweep.cells.begin(), sweep.cells.end(), fits) ? Exit::answered
                                                                                    : Exit::answered_no);
}

}  // namespace headroom::cli
