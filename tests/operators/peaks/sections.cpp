#include <memory>
#include <nlohmann/json.hpp>

#include "estimator/shadow/shadow.h"
#include "estimator/shadow/tables/aten_table.h"
#include "tests/operators/peaks/figures.h"
#include "tests/operators/replay.h"

namespace headroom::peaks {
namespace {

using namespace headroom::shadow;
using nlohmann::json;

AttentionBackend backend_named(const json& name) {
  if (name.is_null()) return AttentionBackend::automatic;
  if (name == "math") return AttentionBackend::math;
  if (name == "flash") return AttentionBackend::flash;
  return name == "efficient" ? AttentionBackend::efficient : AttentionBackend::cudnn;
}

/// The lines of a section, executed.
class Section {
 public:
  explicit Section(const json& section) : section_(section) {
    DeviceFacts device;
    device.attention = backend_named(section["attention"]);
    m_ = std::make_unique<Shadow>(*aten::table_for("2.11").table, device);
  }

  std::vector<Row> run() {
    m_->set_grad_enabled(false);
    stretch();
    for (const json& call : section_["calls"]) {
      try {
        if (!beside(call)) probes::run_call(*m_, call, slots_);
      } catch (const std::exception& e) {
        throw std::runtime_error(call.dump() + ": " + e.what());
      }
    }
    const auto found = windows(m_->take_trace(), emptied_);
    std::vector<Row> rows;
    for (const json& call : section_["calls"]) {
      if (call["op"] != "row") continue;
      Row& row = rows.emplace_back();
      row.name = call["args"][0];
      for (const auto& [name, where] : call["args"][1].items()) {
        const Window& w = found[first_[where[0].get<std::size_t>()]];
        row.predicted[name] = where[1] == "peak" ? w.peak : w.left;
        row.measured[name] = where[2];
      }
    }
    return rows;
  }

 private:
  void stretch() {
    m_->phase(Phase::forward, 0);
    ++stretches_;
  }

  const Tensor& tensor(const json& arg) { return slots_[arg["t"].get<std::size_t>()].tensor(); }

  /// What is no ATen call; false when it is one.
  bool beside(const json& call) {
    const std::string& op = call["op"].get_ref<const std::string&>();
    const json& args = call["args"];
    if (op.starts_with("aten::")) return false;
    if (op == "create") {
      const Dims sizes(args[0]["i"].begin(), args[0]["i"].end()), strides(args[1]["i"].begin(), args[1]["i"].end());
      const DType dtype = dtype_named(args[2]["d"].get_ref<const std::string&>());
      const Tensor t = args[3] ? m_->host_tensor(sizes, dtype) : m_->empty_strided(sizes, strides, dtype);
      probes::store(Value(t), call["out"][0].get<std::size_t>(), slots_);
    } else if (op == "alias") {
      probes::store(Value(m_->alias(tensor(args[0]))), call["out"][0].get<std::size_t>(), slots_);
    } else if (op == "leaf") {
      tensor(args[0])->requires_grad = true;
      tensor(args[0])->parameter = args[1];
    } else if (op == "backward") {
      const Tensor root = tensor(args[0]);
      run_backward(*m_, std::span(&root, 1), {args[1].is_null() ? m_->empty_like(root) : tensor(args[1])});
    } else if (op == "clear_grads") {
      for (const json& slot : args[0]["l"]) slots_[slot.get<std::size_t>()].tensor()->grad.reset();
    } else if (op == "grad_mode") {
      m_->set_grad_enabled(args[0]);
    } else if (op == "enter_autocast") {
      m_->enter_autocast(dtype_named(args[0]["d"].get_ref<const std::string&>()));
    } else if (op == "leave_autocast") {
      m_->leave_autocast();
    } else if (op == "window") {
      first_.push_back(stretches_);
      stretch();
    } else if (op == "empty_cache") {
      emptied_.push_back(stretches_);
      stretch();
    }
    probes::let_go(call, slots_);
    return true;
  }

  const json& section_;
  std::unique_ptr<Shadow> m_;
  std::vector<Value> slots_;
  std::size_t stretches_ = 0;
  std::vector<std::size_t> emptied_;  ///< stretches that begin with an empty cache
  std::vector<std::size_t> first_;    ///< of each window of the section: its stretch
};

}  // namespace

std::vector<Row> of_section(const json& section) { return Section(section).run(); }

}  // namespace headroom::peaks
