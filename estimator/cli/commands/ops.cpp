#include <map>

#include "estimator/bind/operators/families.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/shadow/operator.h"

namespace headroom::cli {

int run_ops(const Options& o) {
  std::string out;
  const bool csv = o.format == "csv";
  if (csv) out += "side,operator,family\n";
  const auto row = [&](std::string_view side, std::string_view name, std::string_view family) {
    if (csv)
      out += std::string(side) + "," + std::string(name) + "," + std::string(family) + "\n";
    else
      out += "  " + std::string(name) + std::string(name.size() < 44 ? 44 - name.size() : 1, ' ') +
             std::string(family) + "\n";
  };
  if (!csv) out += "ONNX operators\n";
  for (const OperatorFamily& family : operator_families())
    for (const OperatorRule& rule : family.rules)
      row("onnx", (family.domain.empty() ? "" : std::string(family.domain) + "::") + std::string(rule.op_type),
          family.name);
  if (!csv) out += "ATen operators\n";
  std::map<std::string_view, std::string_view> aten;
  for (const auto family : shadow::operator_families())
    for (const shadow::Operator& op : family)
      aten[op.name] = op.kind == shadow::Operator::Kind::composite ? "composite" : "kernel";
  for (const auto& [name, kind] : aten) row("aten", name, kind);
  write_result(out, o.output);
  return 0;
}

}  // namespace headroom::cli
