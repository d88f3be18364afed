#include "calibration/runner/values.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>

#include "calibration/runner/dtypes.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom::runner {
namespace {

/// Calls whose result holds (some of) the numbers of their first argument.
bool passes_on(std::string_view op) {
  static const std::set<std::string_view> ops = {"view",     "reshape",    "slice",     "select",      "to",
                                                 "_to_copy", "contiguous", "unsqueeze", "squeeze",     "expand",
                                                 "clone",    "alias",      "detach",    "flatten",     "transpose",
                                                 "permute",  "unbind",     "split",     "_unsafe_view"};
  const auto colons = op.rfind(':');
  const auto name = op.substr(colons == std::string_view::npos ? 0 : colons + 1);
  return ops.contains(name.substr(0, name.find('.')));
}

/// Integer inputs that index a table: how many rows the smallest of their tables has.
void add_index_bounds(const Program& p, std::unordered_map<SlotId, std::int64_t>& bounds) {
  std::unordered_map<SlotId, SlotId> source;  // value → the input whose numbers it holds
  for (const ProgramInput& i : p.inputs)
    if (is_integer(i.dtype)) source[i.slot] = i.slot;
  std::unordered_map<SlotId, std::int64_t> rows;
  for (const Parameter& q : p.parameters)
    if (!q.dims.empty()) rows[q.slot] = q.dims[0];
  for (const Call& c : p.calls) {
    const auto* first = c.args.empty() ? nullptr : std::get_if<SlotId>(&c.args[0]);
    const auto* second = c.args.size() < 2 ? nullptr : std::get_if<SlotId>(&c.args[1]);
    const std::string& op = p.name_of(c.op);
    if (first && second && op.starts_with("aten::embedding") && source.contains(*second) && rows.contains(*first)) {
      const SlotId input = source[*second];
      const auto [bound, fresh] = bounds.try_emplace(input, rows[*first]);
      if (!fresh) bound->second = std::min(bound->second, rows[*first]);
    } else if (first && source.contains(*first) && passes_on(op)) {
      for (const SlotId out : c.outputs)
        if (out.valid()) source[out] = source[*first];
    }
  }
}

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

void fill_parameter(at::Tensor& t, std::string_view name) {
  if (t.dim() >= 2) {
    // Like nn.Linear's and nn.Conv2d's own: variance 1 / (3 · fan-in).
    const double fan_in =
        static_cast<double>(std::max<std::int64_t>(t.numel() / std::max<std::int64_t>(t.size(0), 1), 1));
    t.normal_(0, 1 / std::sqrt(3 * fan_in));
  } else {
    t.fill_(last_part(name) == "weight" ? 1 : 0);
  }
}

void fill_buffer(at::Tensor& t, std::string_view name) {
  if (t.scalar_type() == c10::ScalarType::Bool)
    t.random_(0, 2);  // a mask: neither all nor nothing of a row
  else
    t.fill_(last_part(name) == "running_var" ? 1 : 0);
}

}  // namespace

Values::Values(const Job& job) {
  if (!job.values.empty()) stored_ = read_safetensors(job.values);
  for (const auto& p : job.programs) add_index_bounds(*p, index_bounds_);
}

void Values::fill(at::Tensor& t, SlotId slot, const TensorSpec& spec) const {
  if (const auto found = stored_.find(spec.name); found != stored_.end()) {
    const StoredTensor& s = found->second;
    if (s.dims != spec.dims)
      throw bad_input("the values of '" + std::string(spec.name) + "' have sizes " + text_of(s.dims) + ", not " +
                      text_of(spec.dims));
    t.copy_(at::from_blob(const_cast<char*>(s.bytes.data()), at::IntArrayRef(s.dims.data(), s.dims.size()),
                          at::TensorOptions(scalar_type(s.dtype))));
    return;
  }
  switch (spec.category) {
    case Category::weights:
      fill_parameter(t, spec.name);
      return;
    case Category::buffers:
      fill_buffer(t, spec.name);
      return;
    case Category::inputs:
      if (is_float(spec.dtype)) {
        t.normal_();
      } else if (const auto bound = index_bounds_.find(slot); bound != index_bounds_.end()) {
        t.random_(0, bound->second);
      } else {
        t.fill_(spec.name == "target" ? 0 : 1);  // a class that there is; a mask that lets all through, a length
      }
      return;
    default:
      // State of an optimizer is zero. GradScaler's scale is 1: no gradient overflows, so no step has to be passed
      // over.
      t.fill_(spec.name == "scale" ? 1 : 0);
      return;
  }
}

StoredTensor stored(const at::Tensor& t) {
  const at::Tensor host = t.detach().to(c10::Device(c10::kCPU)).contiguous();
  StoredTensor s;
  s.dtype = dtype_of(host.scalar_type());
  s.dims.assign(host.sizes().begin(), host.sizes().end());
  s.bytes.assign(static_cast<const char*>(host.const_data_ptr()), host.nbytes());
  return s;
}

}  // namespace headroom::runner
