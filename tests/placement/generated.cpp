#include "tests/placement/generated.h"

#include <random>
#include <vector>

namespace headroom {
namespace {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed), build_(p_) {}

  Program make(int calls, int times) {
    batch_ = times * (1 + pick(64));
    const SlotId x = build_.slot("x");
    p_.inputs.push_back({.slot = x, .name = "x", .dims = {batch_, width()}, .dtype = DType::f32, .batch_axis = 0});
    last_ = {x, p_.inputs[0].dims[1]};
    while (static_cast<int>(p_.calls.size()) < calls - 1) step();
    linear(8);
    p_.outputs.push_back({.slot = last_.slot, .name = "out", .dims = {batch_, 8}, .dtype = DType::f32});
    drop();
    return std::move(p_);
  }

 private:
  struct Made {
    SlotId slot;
    std::int64_t width = 0;
  };

  int pick(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::int64_t width() { return 64 * (1 + pick(40)); }

  /// A call on the last value, or one that joins it with an older one.
  void step() {
    const int what = pick(10);
    if (what < 3) return linear(width());
    if (what < 4) return unary("aten::relu", {});
    if (what < 5) return unary("aten::sigmoid", {});
    if (what < 6) return unary("aten::gelu", {});
    if (what < 7) return unary("aten::dropout", {0.1, true});
    const Made old = made_.empty() ? last_ : made_[static_cast<std::size_t>(pick(static_cast<int>(made_.size())))];
    if (old.slot == last_.slot) return linear(width());
    if (what < 8 || old.width != last_.width)
      return call("aten::cat", {Slots{old.slot, last_.slot}, std::int64_t{1}}, old.width + last_.width);
    call(what == 8 ? "aten::add.Tensor" : "aten::mul.Tensor", {old.slot, last_.slot}, last_.width);
  }

  void linear(std::int64_t to) {
    const std::string name = "layers." + std::to_string(p_.parameters.size() / 2);
    const SlotId weight = build_.slot(name + ".weight"), bias = build_.slot(name + ".bias");
    p_.parameters.push_back({.slot = weight, .name = name + ".weight", .dims = {to, last_.width}});
    p_.parameters.push_back({.slot = bias, .name = name + ".bias", .dims = {to}});
    call("aten::linear", {last_.slot, weight, bias}, to);
  }

  void unary(const char* op, std::vector<Arg> more) {
    more.insert(more.begin(), Arg(last_.slot));
    call(op, std::move(more), last_.width);
  }

  void call(const char* op, std::vector<Arg> args, std::int64_t to) {
    const std::string name = "v" + std::to_string(p_.calls.size());
    last_ = {build_.call(op, std::move(args), name, ModuleId{}, name), to};
    made_.push_back(last_);
  }

  void drop() {
    std::vector<std::size_t> last(p_.slot_count(), p_.calls.size());
    for (std::size_t c = 0; c < p_.calls.size(); ++c) for_each_read(p_.calls[c], [&](SlotId s) { last[s.at()] = c; });
    for (const Made& m : made_)
      if (m.slot != p_.outputs[0].slot) {
        // What is never read goes with its call.
        std::size_t at = last[m.slot.at()];
        for (std::size_t c = 0; at == p_.calls.size(); ++c)
          if (p_.calls[c].outputs[0] == m.slot) at = c;
        p_.calls[at].drops.push_back(m.slot);
      }
  }

  std::mt19937 random_;
  Program p_;
  ProgramBuilder build_;
  std::int64_t batch_ = 1;
  Made last_;
  std::vector<Made> made_;
};

}  // namespace

Program generated_program(std::uint32_t seed, int calls, int batch_times) {
  return Generator(seed).make(calls, batch_times);
}

}  // namespace headroom
