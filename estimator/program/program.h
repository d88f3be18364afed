// Program: the eager PyTorch program that a graph stands for. A list of ATen calls in Python's order of evaluation, and
// of the places where Python lets a value go. It knows no numbers but the dimensions, and no optimizer or allocator:
// the same Program runs on the shadow machine and, through PyTorch's dispatcher, on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/base/diagnostic.h"
#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"
#include "estimator/base/ids.h"
#include "estimator/base/name_index.h"

namespace headroom {

using SlotId = Id<struct SlotTag>;      ///< a variable of the program: holds one tensor (or a list of tensors)
using OpId = Id<struct OpTag>;          ///< an ATen operator by name and overload, "aten::add.Tensor"
using ModuleId = Id<struct ModuleTag>;  ///< a module of the model, by path

/// The argument was not given: the schema's default holds.
struct Unset {};
/// Python's None.
struct None {};
/// `x.dtype` of the value in `slot`, known when the call runs: what `.to(x.dtype)` and `.type_as(x)` pass.
struct DTypeOf {
  SlotId slot;
};
/// A string argument: memory formats ("contiguous_format", "preserve_format", "channels_last"), reductions, modes.
struct Text {
  std::string text;
};
using Slots = std::vector<SlotId>;  ///< Tensor[]; an invalid slot inside is None

/// One argument of a call. Numbers where the schema wants a Tensor are Python scalars (wrapped numbers).
using Arg = std::variant<Unset, None, SlotId, Slots, std::int64_t, double, bool, Dims, DType, DTypeOf, Text>;

struct Call {
  OpId op;
  std::vector<Arg> args;      ///< positional in the schema's order, keyword-only ones included; trailing Unset omitted
  Slots outputs;              ///< one per return, Tensor[] returns flattened; an invalid slot: the result is not kept
  Slots drops;                ///< values that Python lets go once this call (and its statement) is done, in order
  ModuleId module;            ///< innermost module whose forward makes the call
  std::string site;           ///< ONNX node (or fx node) it was recovered from, for people
  bool autocast_off = false;  ///< inside a `torch.autocast(enabled=False)` region of the module (rotary embedding)
};

/// A parameter or buffer of the module.
struct Parameter {
  SlotId slot;
  std::string name;  ///< path as in named_parameters() / named_buffers(); of a tied weight: the first
  Dims dims;
  DType dtype = DType::f32;  ///< as stored in the file; Scenario's precision may cast it
  bool buffer = false;
  bool trainable = true;  ///< floating-point parameter that the module trains; --freeze is applied by step
  std::vector<std::string> also_named;  ///< other paths of a tied weight
  bool assumed = false;  ///< not in the file (num_batches_tracked, merged or removed ones): restored by a rule
};

struct ProgramInput {
  SlotId slot;
  std::string name;
  Dims dims;
  DType dtype = DType::f32;
  int batch_axis = -1;
  int sequence_axis = -1;
  bool passed = true;  ///< false: an input of the export only, which the eager run does not pass (a mask it drops)
};

struct ProgramOutput {
  SlotId slot;
  std::string name;
  Dims dims;
  DType dtype = DType::f32;  ///< as the file says; the precision may change it
};

struct Module {
  std::string path;        ///< "transformer.h.0.attn"; "" is the root
  std::string class_name;  ///< "" where the file does not say
};

struct Program {
  std::vector<Parameter> parameters;  ///< named_parameters() order (pre-order), buffers after their module's parameters
  std::vector<ProgramInput> inputs;
  std::vector<Call> calls;
  std::vector<ProgramOutput> outputs;   ///< what forward returns; the first is what the loss is taken of
  bool training = true;                 ///< the mode the module is in
  std::vector<std::string> op_names;    ///< by OpId
  std::vector<Module> modules;          ///< by ModuleId
  std::vector<std::string> slot_names;  ///< by SlotId: for people (ONNX value or fx name)
  Diagnostics diagnostics;

  std::size_t slot_count() const { return slot_names.size(); }
  const std::string& name_of(OpId op) const { return op_names[op.at()]; }
  std::string_view module_path(ModuleId m) const { return m.valid() ? std::string_view(modules[m.at()].path) : ""; }
};

/// Makes the interned parts of a Program while it is being built.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program) : program_(program), ops_({&program}), modules_({&program}) {}

  OpId op(std::string_view name);  ///< "aten::linear"
  ModuleId module(std::string_view path, std::string_view class_name = {});
  SlotId slot(std::string name);
  /// Appends a call with one result and returns its slot.
  SlotId call(std::string_view op_name, std::vector<Arg> args, std::string result_name, ModuleId in, std::string site);
  Call& append(std::string_view op_name, std::vector<Arg> args, Slots outputs, ModuleId in, std::string site);

 private:
  struct NameOfOp {
    const Program* program;
    std::string_view operator()(std::int32_t op) const { return program->op_names[static_cast<std::size_t>(op)]; }
  };
  struct PathOfModule {
    const Program* program;
    std::string_view operator()(std::int32_t m) const { return program->modules[static_cast<std::size_t>(m)].path; }
  };

  Program& program_;
  NameIndex<NameOfOp> ops_;
  NameIndex<PathOfModule> modules_;
};

/// Slots that a call reads (tensor arguments, also inside lists; not DTypeOf).
template <class F>
void for_each_read(const Call& call, F&& f) {
  for (const Arg& a : call.args) {
    if (const auto* s = std::get_if<SlotId>(&a)) {
      if (s->valid()) f(*s);
    } else if (const auto* l = std::get_if<Slots>(&a)) {
      for (const SlotId one : *l)
        if (one.valid()) f(one);
    }
  }
}

/// A line a call: "%add = aten::add.Tensor(%x, %y)  # h.0.mlp   drops %x". For `inspect --stage program` and tests.
std::string describe(const Program& program);

}  // namespace headroom
