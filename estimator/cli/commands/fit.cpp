#include "estimator/plan/fit.h"

#include <algorithm>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/commands/documents.h"
#include "estimator/cli/output.h"
#include "estimator/cli/progress.h"
#include "estimator/plan/cards.h"
#include "estimator/report/fit_report.h"

namespace headroom::cli {

std::vector<Device> devices_of(const Options& o) {
  std::vector<Device> out;
  const auto memory = memory_of(o);
  const auto add = [&](Device d) {
    if (memory) d.total_bytes = *memory;
    if (std::none_of(out.begin(), out.end(), [&](const Device& known) { return known == d; }))
      out.push_back(std::move(d));
  };
  const auto add_where = [&](auto wanted) {
    std::vector<const Card*> chosen;
    for (const Card& c : cards())
      if (wanted(c)) chosen.push_back(&c);
    std::stable_sort(chosen.begin(), chosen.end(),
                     [](const Card* a, const Card* b) { return a->device.total_bytes < b->device.total_bytes; });
    for (const Card* c : chosen) add(c->device);
  };
  for (const std::string& name : o.gpus) {
    if (name == "all")
      add_where([](const Card&) { return true; });
    else
      add(card_named(name).device);
  }
  if (out.empty() && memory) add({});
  if (out.empty()) add_where([](const Card& c) { return c.usual; });
  return out;
}

namespace {

FitQuestion question_of(const Options& o) {
  FitQuestion q;
  Options without_card = o;
  without_card.gpu.clear();
  without_card.memory.clear();
  q.scenario = scenario_of(without_card);
  q.devices = devices_of(o);
  q.max = o.max.empty() && !q.scenario.batch ? "batch" : o.max;
  for (const std::string_view part : split(q.max, ',')) {
    const std::string name(part);
    if (!q.max.empty() && name.empty()) throw usage_error("--max '" + printable(q.max) + "' has an empty name");
    if ((name == "batch" && q.scenario.batch) || (name == "seq" && q.scenario.sequence) ||
        q.scenario.dims.contains(name))
      throw usage_error("--max " + name + " and a given " + name + " exclude each other", "",
                        "leave --" + std::string(name == "batch" || name == "seq" ? name : "dim " + name) + " out");
  }
  if (o.global_batch > 0) {
    if (!q.max.empty() && q.max != "batch")
      throw usage_error("--global-batch needs a batch, not --max " + printable(q.max), "",
                        "give --batch, or --max batch");
    if (q.scenario.accumulate > 1 || !q.scenario.training())
      throw usage_error(
          "--global-batch says how often to accumulate in training: it excludes --accumulate and --task infer");
    q.global_batch = o.global_batch;
  }
  return q;
}

}  // namespace

int run_fit(const Options& o) {
  const std::string& file = model_file(o);
  report::FitAnswer answer;
  answer.model = std::filesystem::path(file).filename().string();
  answer.question = question_of(o);
  std::optional<Prices> prices;
  if (!o.prices.empty()) prices = Prices::read(o.prices);
  note_not_modelled_yet(answer.question.scenario, answer.diagnostics);
  Estimator estimator{std::filesystem::path(file)};
  {
    Progress progress(answer.question.devices.size(), "cards");
    answer.cards = fit(estimator, answer.question,
                       {.threads = o.threads, .progress = [&progress](std::size_t done) { progress.show(done); }});
  }
  if (prices)
    for (CardFit& c : answer.cards) c.price = prices->of(c.device.name);
  const auto failed = [](const CardFit& c) { return c.error.has_value(); };
  if (std::all_of(answer.cards.begin(), answer.cards.end(), failed)) throw *answer.cards[0].error;
  if (o.gpus.empty() && o.memory.empty())
    answer.more_cards = "--gpu all: every card known; --gpu NAME, repeatable, or --memory 24GiB";

  if (o.format == "json")
    write_result(report::fit_json(answer), o.output);
  else if (o.format == "csv")
    write_result(report::fit_csv(answer), o.output);
  else
    write_document(report::fit_grid(answer), o);
  const bool some = std::any_of(answer.cards.begin(), answer.cards.end(), [](const CardFit& c) { return c.fits(); });
  return static_cast<int>(some ? Exit::answered : Exit::answered_no);
}

}  // namespace headroom::cli
