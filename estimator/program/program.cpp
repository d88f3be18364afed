#include "estimator/program/program.h"

#include <cstdio>

#include "estimator/base/text.h"

namespace headroom {

OpId ProgramBuilder::op(std::string_view name) {
  if (const std::int32_t known = ops_.find(name); known >= 0) return OpId(known);
  program_.op_names.emplace_back(name);
  return OpId(ops_.insert(static_cast<std::int32_t>(program_.op_names.size() - 1)));
}

ModuleId ProgramBuilder::module(std::string_view path, std::string_view class_name) {
  if (const std::int32_t known = modules_.find(path); known >= 0) {
    Module& m = program_.modules[static_cast<std::size_t>(known)];
    if (m.class_name.empty()) m.class_name = class_name;
    return ModuleId(known);
  }
  program_.modules.push_back({std::string(path), std::string(class_name)});
  return ModuleId(modules_.insert(static_cast<std::int32_t>(program_.modules.size() - 1)));
}

SlotId ProgramBuilder::slot(std::string name) {
  program_.slot_names.push_back(std::move(name));
  return SlotId(program_.slot_names.size() - 1);
}

SlotId ProgramBuilder::call(std::string_view op_name, std::vector<Arg> args, std::string result_name, ModuleId in,
                            std::string site) {
  const SlotId result = slot(std::move(result_name));
  append(op_name, std::move(args), {result}, in, std::move(site));
  return result;
}

Call& ProgramBuilder::append(std::string_view op_name, std::vector<Arg> args, Slots outputs, ModuleId in,
                             std::string site) {
  Call& c = program_.calls.emplace_back();
  c.op = op(op_name);
  c.args = std::move(args);
  c.outputs = std::move(outputs);
  c.module = in;
  c.site = std::move(site);
  return c;
}

namespace {

std::string slot_text(const Program& p, SlotId s) { return s.valid() ? "%" + printable(p.slot_names[s.at()]) : "None"; }

std::string list_text(const Program& p, const Slots& slots) {
  std::string out;
  for (const SlotId s : slots) out += (out.empty() ? "" : ", ") + slot_text(p, s);
  return out;
}

struct ArgText {
  const Program& p;
  std::string operator()(Unset) const { return "_"; }
  std::string operator()(None) const { return "None"; }
  std::string operator()(SlotId s) const { return slot_text(p, s); }
  std::string operator()(const Slots& s) const { return "[" + list_text(p, s) + "]"; }
  std::string operator()(std::int64_t i) const { return std::to_string(i); }
  std::string operator()(double d) const {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", d);
    const std::string s = buffer;
    return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
  }
  std::string operator()(bool b) const { return b ? "True" : "False"; }
  std::string operator()(const Dims& d) const { return text_of(d); }
  std::string operator()(DType t) const { return std::string(name_of(t)); }
  std::string operator()(DTypeOf d) const { return slot_text(p, d.slot) + ".dtype"; }
  std::string operator()(const Text& t) const { return "'" + printable(t.text) + "'"; }
};

}  // namespace

std::string describe(const Program& program) {
  std::string out;
  for (const auto& q : program.parameters)
    out += (q.buffer ? "buffer " : "parameter ") + printable(q.name) + " " + text_of(q.dims) + " " +
           std::string(name_of(q.dtype)) + (q.assumed ? "  (restored)" : "") + "\n";
  for (const auto& i : program.inputs)
    out += "input %" + printable(i.name) + " " + text_of(i.dims) + " " + std::string(name_of(i.dtype)) +
           (i.passed ? "" : "  (not passed)") + "\n";
  for (const auto& c : program.calls) {
    std::string args;
    for (const auto& a : c.args) args += (args.empty() ? "" : ", ") + std::visit(ArgText{program}, a);
    out += list_text(program, c.outputs) + " = " + program.name_of(c.op) + "(" + args + ")";
    if (c.module.valid()) out += "  # " + printable(program.module_path(c.module));
    if (c.autocast_off) out += "  autocast off";
    if (!c.drops.empty()) out += "  drops " + list_text(program, c.drops);
    out += "\n";
  }
  for (const auto& o : program.outputs)
    out += "return " + slot_text(program, o.slot) + " " + text_of(o.dims) + " " + std::string(name_of(o.dtype)) + "\n";
  return out;
}

}  // namespace headroom
