#include "estimator/report/fit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "estimator/base/text.h"
#include "estimator/report/escape.h"
#include "estimator/report/figures.h"
#include "estimator/report/json_parts.h"

namespace headroom::report {
namespace {

using Verdict = GridCell::Verdict;

std::string name_of(const Device& d) { return d.name.empty() ? "a card of " + human(d.total_bytes) : d.name; }

std::string price_text(double amount, const std::string& currency) {
  return fmt::format("{:.2f}", amount) + (currency.empty() ? "" : " " + currency);
}

class FitGrid {
 public:
  explicit FitGrid(const FitAnswer& a) : a_(a) {
    for (const CardFit& c : a.cards) priced_ = priced_ || c.price;
  }

  GridDocument document() {
    const std::string& max = a_.question.max;
    const std::vector<std::string> varied{"gpu", "memory", max};
    GridDocument d{
        .title = a_.model, .subtitle = scenario_summary(a_.question.scenario, varied), .grids = {}, .notes = {}};
    Grid g{.title = {}, .across = {}, .columns = {{"card", false, true}, {"memory", true, true}}, .rows = {}};
    if (!max.empty()) g.columns.push_back({"max " + max});
    g.columns.push_back({"device peak"});
    g.columns.push_back({"to spare"});
    if (!max.empty()) g.columns.push_back({"next lacks"});
    if (a_.question.global_batch)
      for (const auto* heading : {"micro-batch", "accumulate", "or cards"}) g.columns.push_back({heading});
    if (priced_) g.columns.push_back({"an hour"});
    if (priced_ && a_.question.global_batch) g.columns.push_back({"all cards"});
    for (const CardFit& c : a_.cards) g.rows.push_back(row(c, g.columns.size()));
    d.grids.push_back(std::move(g));
    notes(d);
    return d;
  }

 private:
  std::vector<GridCell> row(const CardFit& c, std::size_t columns) const {
    std::vector<GridCell> out{{.text = name_of(c.device)}, {.text = human(c.device.total_bytes)}};
    const auto add = [&out](std::string text) { out.push_back({.text = std::move(text)}); };
    if (c.error) {
      out.push_back({.text = "–", .verdict = Verdict::failed});
      out.resize(columns);
      return out;
    }
    const bool searched = !a_.question.max.empty();
    if (searched) add(c.max == 0 ? "none" : std::to_string(c.max) + (c.at_limit ? " or more" : ""));
    // Where nothing fits, what the smallest size needs is of interest.
    const Estimate* at = c.at ? &*c.at : nullptr;
    if (at)
      out.push_back({.text = human(at->peak_device),
                     .verdict = c.fits() ? Verdict::fits : Verdict::does_not_fit,
                     // Of the largest that fits it says nothing: all cards are full.
                     .heat = searched
                                 ? -1
                                 : static_cast<double>(at->peak_device.count()) /
                                       static_cast<double>(std::max<std::int64_t>(1, c.device.total_bytes.count()))});
    else
      add("");
    add(at ? at->spare.count() >= 0 ? human(at->spare) : human(Bytes() - at->spare) + " short" : "");
    if (searched) {
      add(c.above ? human(Bytes() - c.above->spare) : c.above_fails ? "cannot be run" : "");
    }
    if (a_.question.global_batch) {
      add(c.accumulation ? std::to_string(c.accumulation->micro_batch) : "");
      add(c.accumulation ? std::to_string(c.accumulation->steps) : "");
      add(c.accumulation ? std::to_string(c.accumulation->cards) : "");
    }
    if (priced_) add(c.price ? price_text(c.price->per_hour, c.price->currency) : "");
    if (priced_ && a_.question.global_batch)
      add(c.price && c.accumulation
              ? price_text(c.price->per_hour * static_cast<double>(c.accumulation->cards), c.price->currency)
              : "");
    return out;
  }

  void notes(GridDocument& d) const {
    if (!a_.question.max.empty())
      d.notes.push_back(
          "max: the largest that fits with what the figure can be short by held back; sizes up to an "
          "eighth above it were simulated too, and none of them fits");
    else
      d.notes.push_back("✗ does not fit, with what the figure can be short by held back");
    if (a_.question.global_batch)
      d.notes.push_back(
          fmt::format("a global batch of {}: one card accumulates micro-batches of a size that divides it (the "
                      "gradients kept meanwhile are simulated), or so many cards take a part each (what data "
                      "parallelism itself needs is not in the figure)",
                      *a_.question.global_batch));
    if (const CardFit* c = cheapest())
      d.notes.push_back("the least an hour of those that hold it: " + name_of(c->device) + ", " +
                        price_text(c->price->per_hour, c->price->currency));
    std::vector<std::string> failures;
    for (const CardFit& c : a_.cards)
      if (c.error && std::find(failures.begin(), failures.end(), c.error->what()) == failures.end())
        failures.emplace_back(c.error->what());
    for (const std::string& f : failures) d.notes.push_back("– no answer: " + f);
    for (const CardFit& c : a_.cards) {
      if (!c.above_fails) continue;
      d.notes.push_back(fmt::format("{} {}: {}", a_.question.max, c.next, c.above_fails->what()));
      break;
    }
    for (const Diagnostic& n : a_.diagnostics) d.notes.push_back(n.message);
    if (!a_.more_cards.empty()) d.notes.push_back(a_.more_cards);
  }

  /// Null where prices are in several currencies.
  const CardFit* cheapest() const {
    const CardFit* best = nullptr;
    for (const CardFit& c : a_.cards) {
      if (!c.price || !c.fits()) continue;
      if (best && best->price->currency != c.price->currency) return nullptr;
      if (!best || c.price->per_hour < best->price->per_hour) best = &c;
    }
    return best;
  }

  const FitAnswer& a_;
  bool priced_ = false;
};

}  // namespace

GridDocument fit_grid(const FitAnswer& answer) { return FitGrid(answer).document(); }

std::string fit_json(const FitAnswer& a) {
  using nlohmann::ordered_json;
  ordered_json j = json_head();
  j["model"] = {{"name", a.model}};
  j["scenario"] = scenario_json(a.question.scenario);
  const bool searched = !a.question.max.empty();
  j["max_of"] = searched ? ordered_json(a.question.max) : ordered_json(nullptr);
  if (a.question.global_batch) j["global_batch"] = *a.question.global_batch;
  j["cards"] = ordered_json::array();
  for (const CardFit& c : a.cards) {
    ordered_json row{{"gpu", c.device.name}, {"memory_bytes", c.device.total_bytes.count()}};
    if (c.error) {
      row["error"] = error_json(*c.error);
      j["cards"].push_back(std::move(row));
      continue;
    }
    row["fits"] = c.fits();
    if (searched) row["max"] = c.max;
    if (c.at_limit) row["at_limit"] = true;
    row["peak"] = c.at ? peak_json(*c.at) : ordered_json(nullptr);
    if (c.at) {
      row["margin"] = margin_json(*c.at);
      row["spare_bytes"] = c.at->spare.count();
    }
    if (searched) {
      row["next"] = c.next > 0 ? ordered_json(c.next) : ordered_json(nullptr);
      row["next_peak"] = c.above ? peak_json(*c.above) : ordered_json(nullptr);
      if (c.above) row["next_spare_bytes"] = c.above->spare.count();
      if (c.above_fails) row["next_error"] = error_json(*c.above_fails);
    }
    if (c.accumulation)
      row["accumulation"] = {{"micro_batch", c.accumulation->micro_batch},
                             {"accumulate", c.accumulation->steps},
                             {"cards", c.accumulation->cards},
                             {"peak", peak_json(c.accumulation->estimate)},
                             {"spare_bytes", c.accumulation->estimate.spare.count()}};
    if (c.price) row["price"] = {{"per_hour", c.price->per_hour}, {"currency", c.price->currency}};
    j["cards"].push_back(std::move(row));
  }
  j["diagnostics"] = diagnostics_json(a.diagnostics);
  return json_text(j);
}

std::string fit_csv(const FitAnswer& a) {
  std::string out =
      "model,gpu,memory_bytes,fits,max,allocated_bytes,reserved_bytes,device_bytes,spare_bytes,next,next_device_bytes,"
      "micro_batch,accumulate,cards,price_per_hour,currency,error\n";
  for (const CardFit& c : a.cards) {
    out += csv_field(a.model) + "," + csv_field(c.device.name) + "," + std::to_string(c.device.total_bytes.count());
    const auto cell = [&out](const std::string& text) { out += "," + text; };
    const auto bytes = [&](const std::optional<Estimate>& e, auto figure) {
      cell(e && !c.error ? std::to_string(((*e).*figure).count()) : "");
    };
    cell(c.error ? "" : c.fits() ? "yes" : "no");
    cell(c.error || a.question.max.empty() ? "" : std::to_string(c.max));
    bytes(c.at, &Estimate::peak_allocated);
    bytes(c.at, &Estimate::peak_reserved);
    bytes(c.at, &Estimate::peak_device);
    bytes(c.at, &Estimate::spare);
    cell(c.next > 0 ? std::to_string(c.next) : "");
    bytes(c.above, &Estimate::peak_device);
    for (const auto part : {&Accumulation::micro_batch, &Accumulation::steps, &Accumulation::cards})
      cell(c.accumulation ? std::to_string((*c.accumulation).*part) : "");
    cell(c.price ? fmt::format("{}", c.price->per_hour) : "");
    cell(c.price ? csv_field(c.price->currency) : "");
    cell(c.error ? csv_field(c.error->what()) : "");
    out += "\n";
  }
  return out;
}

}  // namespace headroom::report
