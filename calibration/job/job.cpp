#include "calibration/job/job.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/program/scenario_names.h"

namespace headroom {

using Json = nlohmann::json;

static void to_json(Json& j, const PlannedSegment& s) {
  j = {{"modules", s.modules}, {"calls", {s.begin, s.end}}, {"reentrant", s.reentrant}, {"save", s.save}};
}
static void from_json(const Json& j, PlannedSegment& s) {
  j.at("modules").get_to(s.modules);
  j.at("calls").at(0).get_to(s.begin);
  j.at("calls").at(1).get_to(s.end);
  j.at("reentrant").get_to(s.reentrant);
  j.at("save").get_to(s.save);
}
static void to_json(Json& j, const CheckpointPlan& p) { j = {{"calls", p.calls}, {"segments", p.segments}}; }
static void from_json(const Json& j, CheckpointPlan& p) {
  j.at("calls").get_to(p.calls);
  j.at("segments").get_to(p.segments);
}

namespace {

constexpr int schema_version = 1;

// ---- scenario ------------------------------------------------------------------------------------------------------

/// The fields of a scenario that the step reads, for writing and reading alike.
template <class S, class Field, class Choice>
void for_each_field(S& s, Field&& field, Choice&& choice) {
  choice("task", s.task, task_names);
  choice("precision", s.precision, precision_names);
  choice("cast-on", s.cast_on, cast_on_names);
  choice("optimizer", s.optimizer, optimizer_names);
  choice("optimizer-impl", s.optimizer_impl, optimizer_impl_names);
  choice("loss", s.loss, loss_names);
  choice("zero-grad", s.zero_grad, zero_grad_names);
  choice("leak", s.leak, leak_names);
  choice("attention", s.attention, attention_names);
  field("accumulate", s.accumulate);
  field("skipped-steps", s.skipped_steps);
  field("clip-grad", s.clip_grad);
  field("keep-grads", s.keep_grads);
  field("channels-last", s.channels_last);
  field("freeze", s.freeze);
  field("checkpoint-plan", s.checkpoint_plan);
}

Json json_of(const Scenario& s) {
  Json j;
  for_each_field(
      s, [&](const char* name, const auto& value) { j[name] = value; },
      [&](const char* name, auto value, const auto& names) { j[name] = std::string(name_in(names, value)); });
  j["outputs"] = s.keeps_outputs() ? "keep" : "drop";
  j["checkpoint"] = s.checkpoint == CheckpointKind::none     ? "none"
                    : s.checkpoint == CheckpointKind::blocks ? "blocks"
                                                             : "plan";
  return j;
}

template <class T, std::size_t N>
T chosen(const Json& j, const char* name, const std::array<Named<T>, N>& names) {
  const auto& text = j.at(name).get_ref<const std::string&>();
  for (const auto& [known, value] : names)
    if (known == text) return value;
  throw bad_input("the job's " + std::string(name) + " is unknown: '" + text + "'");
}

Scenario scenario_of(const Json& j) {
  Scenario s;
  for_each_field(
      s, [&](const char* name, auto& value) { j.at(name).get_to(value); },
      [&](const char* name, auto& value, const auto& names) { value = chosen(j, name, names); });
  s.outputs = chosen(j, "outputs", outputs_names);
  constexpr auto checkpoints = std::to_array<Named<CheckpointKind>>(
      {{"none", CheckpointKind::none}, {"blocks", CheckpointKind::blocks}, {"plan", CheckpointKind::plan}});
  s.checkpoint = chosen(j, "checkpoint", checkpoints);
  return s;
}

// ---- program -------------------------------------------------------------------------------------------------------

Json json_of(const Dims& d) {
  Json j = Json::array();
  for (const auto n : d) j.push_back(n);
  return j;
}

Json json_of(const Slots& slots) {
  Json j = Json::array();
  for (const SlotId s : slots) j.push_back(s.index);
  return j;
}

struct ArgJson {
  Json operator()(Unset) const { return Json::object(); }
  Json operator()(None) const { return nullptr; }
  Json operator()(SlotId s) const { return {{"slot", s.index}}; }
  Json operator()(const Slots& s) const { return {{"slots", json_of(s)}}; }
  Json operator()(std::int64_t i) const { return i; }
  Json operator()(double d) const {
    if (std::isfinite(d)) return d;
    return {{"number", std::isnan(d) ? "nan" : d > 0 ? "inf" : "-inf"}};
  }
  Json operator()(bool b) const { return b; }
  Json operator()(const Dims& d) const { return json_of(d); }
  Json operator()(DType t) const { return {{"dtype", std::string(name_of(t))}}; }
  Json operator()(DTypeOf d) const { return {{"dtype_of", d.slot.index}}; }
  Json operator()(const Text& t) const { return t.text; }
};

Json json_of(const Program& p) {
  Json j;
  j["training"] = p.training;
  j["slots"] = p.slot_names;
  j["operators"] = p.op_names;
  for (const Module& m : p.modules) j["modules"].push_back({m.path, m.class_name});
  for (const Parameter& q : p.parameters)
    j["parameters"].push_back({{"slot", q.slot.index},
                               {"name", q.name},
                               {"dims", json_of(q.dims)},
                               {"dtype", std::string(name_of(q.dtype))},
                               {"buffer", q.buffer},
                               {"trainable", q.trainable},
                               {"also", q.also_named}});
  for (const ProgramInput& i : p.inputs)
    j["inputs"].push_back({{"slot", i.slot.index},
                           {"name", i.name},
                           {"dims", json_of(i.dims)},
                           {"dtype", std::string(name_of(i.dtype))},
                           {"passed", i.passed}});
  for (const ProgramOutput& o : p.outputs)
    j["outputs"].push_back({{"slot", o.slot.index},
                            {"name", o.name},
                            {"dims", json_of(o.dims)},
                            {"dtype", std::string(name_of(o.dtype))}});
  for (const Call& c : p.calls) {
    Json call{{"op", c.op.index}, {"args", Json::array()}, {"out", json_of(c.outputs)}};
    for (const Arg& a : c.args) call["args"].push_back(std::visit(ArgJson{}, a));
    if (!c.drops.empty()) call["drop"] = json_of(c.drops);
    if (c.module.valid()) call["module"] = c.module.index;
    if (!c.site.empty()) call["site"] = c.site;
    if (c.autocast_off) call["autocast_off"] = true;
    j["calls"].push_back(std::move(call));
  }
  return j;
}

Dims dims_of(const Json& j) {
  Dims out;
  for (const Json& n : j) out.push_back(n.get<std::int64_t>());
  return out;
}

DType dtype_of(const Json& j) {
  const DType t = dtype_named(j.get_ref<const std::string&>());
  if (t == DType::undefined) throw bad_input("the job has an unknown dtype: " + j.dump());
  return t;
}

/// Reads a program, with every index checked.
class ProgramReader {
 public:
  explicit ProgramReader(const Json& j) : j_(j) {}

  Program read() {
    Program p;
    j_.at("training").get_to(p.training);
    j_.at("slots").get_to(p.slot_names);
    j_.at("operators").get_to(p.op_names);
    for (const Json& m : list("modules")) p.modules.push_back({m.at(0), m.at(1)});
    for (const Json& q : list("parameters")) {
      Parameter& one = p.parameters.emplace_back();
      one.slot = slot(q.at("slot"));
      q.at("name").get_to(one.name);
      one.dims = dims_of(q.at("dims"));
      one.dtype = dtype_of(q.at("dtype"));
      q.at("buffer").get_to(one.buffer);
      q.at("trainable").get_to(one.trainable);
      q.at("also").get_to(one.also_named);
    }
    for (const Json& i : list("inputs"))
      p.inputs.push_back({.slot = slot(i.at("slot")),
                          .name = i.at("name"),
                          .dims = dims_of(i.at("dims")),
                          .dtype = dtype_of(i.at("dtype")),
                          .passed = i.at("passed")});
    for (const Json& o : list("outputs"))
      p.outputs.push_back({.slot = slot(o.at("slot")),
                           .name = o.at("name"),
                           .dims = dims_of(o.at("dims")),
                           .dtype = dtype_of(o.at("dtype"))});
    for (const Json& c : list("calls")) p.calls.push_back(call(c, p));
    if (p.outputs.empty()) throw bad_input("the job's program has no output");
    return p;
  }

 private:
  const Json& list(const char* name) const {
    static const Json none = Json::array();
    const auto found = j_.find(name);
    return found == j_.end() ? none : *found;
  }
  static std::int32_t index(const Json& j, std::size_t count) {
    const auto i = j.get<std::int64_t>();
    if (i < -1 || i >= static_cast<std::int64_t>(count))
      throw bad_input("the job has an index out of range: " + j.dump());
    return static_cast<std::int32_t>(i);
  }
  SlotId slot(const Json& j) const { return SlotId(index(j, j_.at("slots").size())); }
  Slots slots(const Json& j) const {
    Slots out;
    for (const Json& s : j) out.push_back(slot(s));
    return out;
  }
  Arg argument(const Json& j) const {
    if (j.is_null()) return None{};
    if (j.is_boolean()) return j.get<bool>();
    if (j.is_number_integer()) return j.get<std::int64_t>();
    if (j.is_number()) return j.get<double>();
    if (j.is_string()) return Text{j};
    if (j.is_array()) return dims_of(j);
    if (j.empty()) return Unset{};
    const auto& [key, value] = *j.items().begin();
    if (key == "slot") return slot(value);
    if (key == "slots") return slots(value);
    if (key == "dtype") return dtype_of(value);
    if (key == "dtype_of") return DTypeOf{slot(value)};
    if (key == "number") {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      return value == "nan" ? std::numeric_limits<double>::quiet_NaN() : value == "-inf" ? -infinity : infinity;
    }
    throw bad_input("the job has an unknown argument: " + j.dump());
  }
  Call call(const Json& j, const Program& p) const {
    Call c;
    c.op = OpId(index(j.at("op"), p.op_names.size()));
    if (!c.op.valid()) throw bad_input("the job has a call without an operator");
    for (const Json& a : j.at("args")) c.args.push_back(argument(a));
    c.outputs = slots(j.at("out"));
    if (const auto d = j.find("drop"); d != j.end()) c.drops = slots(*d);
    if (const auto m = j.find("module"); m != j.end()) c.module = ModuleId(index(*m, p.modules.size()));
    c.site = j.value("site", "");
    c.autocast_off = j.value("autocast_off", false);
    return c;
  }

  const Json& j_;
};

Json json_of(const std::vector<std::optional<Dims>>& shapes) {
  Json j = Json::array();
  for (const auto& s : shapes) j.push_back(s ? json_of(*s) : Json());
  return j;
}

Json json_of(const ConvProbe& p) {
  return {p.in_channels,       p.out_channels, json_of(p.kernel), json_of(p.stride), json_of(p.padding),
          json_of(p.dilation), p.groups,       json_of(p.input),  p.batch,           std::string(name_of(p.dtype)),
          p.channels_last};
}

ConvProbe probe_of(const Json& j) {
  ConvProbe p;
  p.in_channels = j.at(0);
  p.out_channels = j.at(1);
  p.kernel = dims_of(j.at(2));
  p.stride = dims_of(j.at(3));
  p.padding = dims_of(j.at(4));
  p.dilation = dims_of(j.at(5));
  p.groups = j.at(6);
  p.input = dims_of(j.at(7));
  p.batch = j.at(8);
  p.dtype = dtype_of(j.at(9));
  p.channels_last = j.at(10);
  if (p.groups < 1 || p.kernel.size() != 2 || p.input.size() != 2)
    throw bad_input("the job has no such convolution: " + j.dump());
  return p;
}

}  // namespace

std::string job_text(const Job& job) {
  Json j{{"schema_version", schema_version},
         {"device", job.device},
         {"steps", job.steps},
         {"seed", job.seed},
         {"memory_bytes", job.memory.count()},
         {"history", job.history},
         {"check", job.check},
         {"values", job.values},
         {"results", job.results},
         {"seconds", job.seconds},
         {"scenario", json_of(job.scenario)},
         {"order", job.order}};
  for (const ConvProbe& p : job.convolutions) j["convolutions"].push_back(json_of(p));
  for (const auto& p : job.programs) j["programs"].push_back(json_of(*p));
  for (const auto& s : job.shapes) j["shapes"].push_back(json_of(s));
  return j.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Job read_job(std::string_view text) {
  try {
    const Json j = Json::parse(text);
    if (j.at("schema_version") != schema_version)
      throw bad_input("the job is of another schema: headroom and headroom-runner are not of one version");
    Job job;
    j.at("device").get_to(job.device);
    j.at("steps").get_to(job.steps);
    j.at("seed").get_to(job.seed);
    job.memory = Bytes(j.at("memory_bytes").get<std::int64_t>());
    j.at("history").get_to(job.history);
    j.at("check").get_to(job.check);
    j.at("values").get_to(job.values);
    j.at("results").get_to(job.results);
    j.at("seconds").get_to(job.seconds);
    if (const auto convolutions = j.find("convolutions"); convolutions != j.end()) {
      for (const Json& p : *convolutions) job.convolutions.push_back(probe_of(p));
      return job;
    }
    job.scenario = scenario_of(j.at("scenario"));
    for (const Json& p : j.at("programs"))
      job.programs.push_back(std::make_shared<const Program>(ProgramReader(p).read()));
    j.at("order").get_to(job.order);
    if (job.order.empty()) throw bad_input("the job has no program");
    for (const auto i : job.order)
      if (i >= job.programs.size()) throw bad_input("the job has an index out of range: order");
    if (const auto shapes = j.find("shapes"); shapes != j.end())
      for (const Json& of_program : *shapes) {
        auto& out = job.shapes.emplace_back();
        for (const Json& s : of_program) {
          auto& one = out.emplace_back();
          if (!s.is_null()) one = dims_of(s);
        }
      }
    return job;
  } catch (const nlohmann::json::exception& e) {
    throw bad_input("no job: " + std::string(e.what()), "standard input", "headroom verify and calibrate write jobs");
  }
}

}  // namespace headroom
