#include "calibration/runner/dispatch.h"

#include <ATen/ScalarOps.h>

#include <utility>

#include "calibration/runner/dtypes.h"
#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

using c10::IValue;
using c10::TypeKind;

/// Makes the IValue that a schema's argument wants of a program's argument.
class Convert {
 public:
  Convert(const c10::Argument& argument, std::span<const IValue> slots)
      : name_(argument.name()), type_(argument.type()), count_(argument.N()), slots_(slots) {
    if (type_->kind() != TypeKind::OptionalType) return;
    optional_ = true;
    type_ = type_->expectRef<c10::OptionalType>().getElementType();
  }

  IValue operator()(Unset) const { return {}; }
  IValue operator()(None) const {
    return kind() == TypeKind::TensorType && !optional_ ? IValue(at::Tensor()) : IValue();
  }
  IValue operator()(SlotId s) const { return s.valid() ? slots_[s.at()] : (*this)(None{}); }
  IValue operator()(const Slots& list) const {
    if (kind() != TypeKind::ListType) refuse("a list of tensors");
    c10::impl::GenericList out(element());
    out.reserve(list.size());
    for (const SlotId s : list) out.push_back(s.valid() ? slots_[s.at()] : IValue());
    return out;
  }
  IValue operator()(std::int64_t i) const { return number(c10::Scalar(i)); }
  IValue operator()(double d) const { return number(c10::Scalar(d)); }
  IValue operator()(bool b) const { return number(c10::Scalar(b)); }
  IValue operator()(const Dims& dims) const {
    if (kind() != TypeKind::ListType) refuse("a list of numbers");
    c10::impl::GenericList out(element());
    for (const auto n : dims) out.push_back(scalar(c10::Scalar(n), element()->kind()));
    return out;
  }
  IValue operator()(DType t) const { return static_cast<std::int64_t>(scalar_type(t)); }
  IValue operator()(DTypeOf d) const { return static_cast<std::int64_t>(slots_[d.slot.at()].toTensor().scalar_type()); }
  IValue operator()(const Text& t) const {
    if (kind() == TypeKind::StringType) return t.text;
    if (kind() == TypeKind::DeviceObjType) return c10::Device(t.text);
    for (const auto& [text, value] : enumerators)
      if (text == t.text) return value;
    refuse("'" + t.text + "'");
  }

 private:
  TypeKind kind() const { return type_->kind(); }
  c10::TypePtr element() const { return type_->expectRef<c10::ListType>().getElementType(); }

  IValue scalar(const c10::Scalar& s, TypeKind wanted) const {
    switch (wanted) {
      case TypeKind::IntType:
        return s.isFloatingPoint() ? static_cast<std::int64_t>(s.toDouble()) : s.toLong();
      case TypeKind::FloatType:
        return s.toDouble();
      case TypeKind::BoolType:
        return s.isFloatingPoint() ? s.toDouble() != 0 : s.toLong() != 0;
      case TypeKind::NumberType:
        return s;
      case TypeKind::TensorType: {
        // What Python's bindings pass for a number: it keeps type promotion, and makes no device memory.
        at::Tensor t = c10::scalar_to_tensor(s);
        t.unsafeGetTensorImpl()->set_wrapped_number(true);
        return t;
      }
      default:
        refuse("a number");
    }
  }
  IValue number(const c10::Scalar& s) const {
    if (kind() != TypeKind::ListType) return scalar(s, kind());
    // One number stands for a list of that many, as in Python.
    c10::impl::GenericList out(element());
    for (int i = 0; i < std::max(count_.value_or(1), 1); ++i) out.push_back(scalar(s, element()->kind()));
    return out;
  }
  [[noreturn]] void refuse(const std::string& what) const {
    throw bad_input("argument " + name_ + " wants " + type_->str() + ", not " + what);
  }

  static constexpr std::pair<std::string_view, std::int64_t> enumerators[] = {
      {"contiguous_format", static_cast<std::int64_t>(c10::MemoryFormat::Contiguous)},
      {"preserve_format", static_cast<std::int64_t>(c10::MemoryFormat::Preserve)},
      {"channels_last", static_cast<std::int64_t>(c10::MemoryFormat::ChannelsLast)},
      {"channels_last_3d", static_cast<std::int64_t>(c10::MemoryFormat::ChannelsLast3d)},
      {"strided", static_cast<std::int64_t>(c10::Layout::Strided)},
  };

  std::string name_;
  c10::TypePtr type_;
  bool optional_ = false;
  std::optional<std::int32_t> count_;
  std::span<const IValue> slots_;
};

bool holds_tensor(const IValue& v) { return v.isTensor() ? v.toTensor().defined() : v.isTensorList(); }

}  // namespace

std::vector<IValue> Dispatch::call(std::string_view op, std::span<const Arg> args, std::span<const IValue> slots) {
  auto found = handles_.find(op);
  if (found == handles_.end()) {
    const auto dot = op.find('.');
    const auto handle = c10::Dispatcher::singleton().findSchema(
        {std::string(op.substr(0, dot)), dot == std::string_view::npos ? "" : std::string(op.substr(dot + 1))});
    if (!handle) throw bad_input("this PyTorch has no operator " + std::string(op));
    found = handles_.emplace(std::string(op), *handle).first;
  }
  const auto& arguments = found->second.schema().arguments();
  if (args.size() > arguments.size()) throw bad_input(std::string(op) + " has fewer arguments than it is given");
  torch::jit::Stack stack;
  stack.reserve(arguments.size());
  bool tensors = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& a = arguments[i];
    if (i < args.size() && !std::holds_alternative<Unset>(args[i])) {
      stack.push_back(std::visit(Convert(a, slots), args[i]));
      tensors = tensors || holds_tensor(stack.back());
    } else if (a.default_value()) {
      stack.push_back(*a.default_value());
    } else {
      throw bad_input(std::string(op) + " is called without its argument " + a.name());
    }
    if (!tensors && a.name() == "device" && stack.back().isNone()) stack.back() = device_;
  }
  found->second.callBoxed(stack);
  std::vector<IValue> results;
  results.reserve(stack.size());
  for (IValue& v : stack) {
    if (!v.isTensorList()) {
      results.push_back(std::move(v));
      continue;
    }
    for (const at::Tensor& t : v.toTensorVector()) results.emplace_back(t);
  }
  return results;
}

}  // namespace headroom::runner
