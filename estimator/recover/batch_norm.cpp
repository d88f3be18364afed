#include "estimator/recover/batch_norm.h"

namespace headroom::recovery {

bool affine_is_none(const Recovery& r, NodeIndex norm, std::size_t input) {
  if (const FxGroup* group = r.origins.group_of(norm)) {
    const FxArg* given = group->fx.arg(input);
    return given && given->is(FxArg::Kind::none);
  }
  if (!r.mode.torch_names) return false;
  NodeIndex n = r.graph.producer(r.graph.input(norm, input));
  while (r.graph.is(n, "Expand")) n = r.graph.producer(r.graph.input(n, 0));
  return r.graph.is(n, "Constant") || r.graph.is(n, "ConstantOfShape");
}

SlotId call_batch_norm(Recovery& r, SlotId x, const BatchNormOperands& o, std::string name) {
  r.parameters.set_buffer(o.mean);
  r.parameters.set_buffer(o.variance);
  if (r.parameters.is_parameter(o.variance)) {
    std::string module = r.parameters.at(o.variance).name;
    module.resize(module.rfind('.') == std::string::npos ? 0 : module.rfind('.') + 1);
    const SlotId counter = r.parameters.restored(module + "num_batches_tracked", {}, DType::i64, true, o.variance);
    if (r.options.training) r.effect("aten::add_.Tensor", {counter, std::int64_t{1}});
  }
  return r.call("aten::batch_norm",
                {x, o.weight, o.bias, o.mean, o.variance, r.options.training, o.momentum, o.epsilon, true},
                std::move(name));
}

}  // namespace headroom::recovery
