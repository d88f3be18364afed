#include "estimator/bind/dim_binding.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/bind/dim_expression.h"
#include "estimator/bind/dim_meaning.h"
#include "estimator/bind/size_limits.h"

namespace headroom {
namespace {

/// Side of an image when the file leaves it open and the user says nothing: what torchvision's weights were trained on.
constexpr std::int64_t assumed_image_side = 224;

std::string times_text(std::span<const std::int64_t> shape) {
  std::string s;
  for (const auto d : shape) s += (s.empty() ? "" : "x") + std::to_string(d);
  return s;
}

/// One open dimension: all places of one name, or one place without a name.
struct Symbol {
  std::string name;       ///< as the user writes it in --dim; "" when it has none
  std::size_t input = 0;  ///< first place
  std::size_t axis = 0;
  DimMeaning meaning = DimMeaning::unknown;
  std::int64_t value = -1;
  std::string source;
  bool formula = false;  ///< of other names in the file or in --dim

  bool bound() const { return value >= 0; }
};

class DimBinder {
 public:
  DimBinder(ShapedGraph& graph, const Bindings& bindings) : graph_(graph), bindings_(bindings) {}

  void run() {
    check_numbers();
    collect();
    bind_shapes();
    bind_names();
    find_meanings();
    bind_meaning(DimMeaning::batch, bindings_.batch, "--batch");
    bind_meaning(DimMeaning::sequence, bindings_.sequence, "--seq");
    bind_past();
    bind_formulas();
    assume_image_sides();
    require_all_bound();
    check_fixed_batch();
    check_fixed_sequence();
    finish();
  }

 private:
  struct Input {
    const GraphValue* declared = nullptr;
    std::string_view name;
    std::vector<int> symbols;         ///< by axis: index into symbols_, -1 for a number
    std::vector<std::int64_t> given;  ///< --shape, empty when not given
    bool shape_given = false;
  };

  std::string place(const Symbol& s) const {
    return "axis " + std::to_string(s.axis) + " of " + std::string(inputs_[s.input].name);
  }
  std::string display(const Symbol& s) const {
    return s.name.empty() ? place(s) : "\"" + s.name + "\" (" + place(s) + ")";
  }
  std::string file() const { return graph_.model->path.string(); }

  void check_numbers() const {
    const auto positive = [](std::string_view option, std::optional<std::int64_t> n) {
      if (n && *n < 1) throw usage_error(std::string(option) + " must be at least 1, not " + std::to_string(*n));
    };
    positive("--batch", bindings_.batch);
    positive("--seq", bindings_.sequence);
    for (const auto& [name, n] : bindings_.dims)
      if (n < 0) throw usage_error("--dim " + name + " must not be negative");
    for (const auto& [name, shape] : bindings_.shapes)
      for (const auto n : shape)
        if (n < 0) throw usage_error("--shape " + name + " must not have a negative size");
  }

  void collect() {
    for (const GraphValue& declared : graph_.model->graph().inputs) {
      Input input{&declared, graph_.model->name_of(declared.value), {}, {}, false};
      const std::size_t index = inputs_.size();
      const auto& dims = declared.type.dims;
      for (std::size_t axis = 0; axis < dims.size() && holds_tensor(declared.type); ++axis)
        input.symbols.push_back(dims[axis].value >= 0 ? -1 : symbol(dims[axis].param, index, axis));
      inputs_.push_back(std::move(input));
    }
  }

  /// Whether the input is one tensor, surely or maybe; else its dims are those of elements.
  static bool holds_tensor(const DeclaredType& type) {
    return type.kind != DeclaredType::Kind::sequence && type.kind != DeclaredType::Kind::map;
  }

  int symbol(std::string_view name, std::size_t input, std::size_t axis) {
    const auto next = static_cast<int>(symbols_.size());
    if (!name.empty())
      if (const auto [at, fresh] = by_name_.emplace(name, next); !fresh) return at->second;
    symbols_.push_back({std::string(name), input, axis, DimMeaning::unknown, -1, {}, false});
    return next;
  }

  void set(Symbol& s, std::int64_t value, std::string source) const {
    if (s.bound() && s.value != value)
      throw usage_error("the dimension " + display(s) + " is " + std::to_string(s.value) + " by " + s.source + " and " +
                            std::to_string(value) + " by " + source,
                        file(), "give one of the two");
    if (s.bound()) return;
    s.value = value;
    s.source = std::move(source);
  }

  void bind_shapes() {
    for (const auto& [name, shape] : bindings_.shapes) {
      const auto input = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& i) { return i.name == name; });
      if (input == inputs_.end()) {
        std::vector<std::string_view> names;
        std::string all;
        for (const Input& i : inputs_) {
          names.push_back(i.name);
          all += (all.empty() ? "" : ", ") + std::string(i.name);
        }
        const std::string_view near = nearest(name, names);
        throw usage_error("--shape names the input \"" + name + "\", which the model does not have", file(),
                          near.empty() ? "its inputs are " + all
                                       : "did you mean --shape " + std::string(near) + "=" + times_text(shape) + "?");
      }
      const DeclaredType& type = input->declared->type;
      if (!holds_tensor(type)) throw usage_error("--shape names the input " + name + ", which is no tensor", file());
      input->given = shape;
      input->shape_given = true;
      if (!type.has_shape) continue;
      if (type.dims.size() != shape.size())
        throw usage_error("--shape " + name + "=" + times_text(shape) + " has " + std::to_string(shape.size()) +
                              " dimensions, the input has " + std::to_string(type.dims.size()),
                          file(), "the file declares " + std::string(name) + " as " + declared_text(type));
      for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (input->symbols[axis] >= 0)
          set(symbols_[static_cast<std::size_t>(input->symbols[axis])], shape[axis], "--shape " + name);
        else if (type.dims[axis].value != shape[axis])
          say(Severity::info, "shape-overridden",
              "the file fixes axis " + std::to_string(axis) + " of " + name + " to " +
                  std::to_string(type.dims[axis].value) + "; --shape makes it " + std::to_string(shape[axis]));
      }
    }
  }

  static std::string declared_text(const DeclaredType& type) {
    std::string s = "[";
    for (const Dim& d : type.dims) {
      if (s.size() > 1) s += ", ";
      s += d.value >= 0 ? std::to_string(d.value) : d.param.empty() ? "?" : std::string(d.param);
    }
    return s + "]";
  }

  void bind_names() {
    for (const auto& [name, value] : bindings_.dims) {
      bool used = false;
      for (Symbol& s : symbols_) {
        if (s.name == name) {
          set(s, value, "--dim " + name);
          used = true;
        } else {
          const auto names = names_in_dim(s.name);
          used = used || std::find(names.begin(), names.end(), name) != names.end();
        }
      }
      if (used) continue;
      std::vector<std::string_view> names;
      std::string all;
      for (const Symbol& s : symbols_)
        if (!s.name.empty()) {
          names.push_back(s.name);
          all += (all.empty() ? "" : ", ") + s.name;
        }
      const std::string_view near = nearest(name, names);
      throw usage_error("--dim names \"" + name + "\", which is no open dimension of the model's inputs", file(),
                        !near.empty()   ? "did you mean --dim " + std::string(near) + "=" + std::to_string(value) + "?"
                        : names.empty() ? "the file leaves no named dimension open"
                                        : "the open ones are " + all);
    }
  }

  std::optional<std::int64_t> value_of(std::string_view name) const {
    if (const auto at = by_name_.find(name); at != by_name_.end()) {
      const Symbol& s = symbols_[static_cast<std::size_t>(at->second)];
      return s.bound() ? std::optional(s.value) : std::nullopt;
    }
    const auto given = bindings_.dims.find(name);
    return given == bindings_.dims.end() ? std::nullopt : std::optional(given->second);
  }

  bool is_known_name(std::string_view name) const { return bindings_.dims.contains(name) || by_name_.contains(name); }

  void find_meanings() {
    for (Symbol& s : symbols_) {
      const auto names = names_in_dim(s.name);
      s.formula = !names.empty() && std::all_of(names.begin(), names.end(), [&](auto n) { return is_known_name(n); });
      if (!s.formula && names.empty()) s.meaning = meaning_by_name(s.name, s.axis);
    }
    for (Symbol& s : symbols_) {
      if (s.formula || s.meaning != DimMeaning::unknown) continue;
      const Input& input = inputs_[s.input];
      const DimPlace at{input.name, input.declared->type.dtype, input.symbols.size(), s.axis, is_made_up(s.name)};
      s.meaning = meaning_by_place(at);
      // [time, batch, features]: the batch has its name, and stands elsewhere.
      if (s.axis == 0 && has_named_batch(input)) s.meaning = DimMeaning::sequence;
      if (s.meaning == DimMeaning::batch && !at.made_up && !s.bound())
        say(Severity::info, "dim-taken", "the dimension " + display(s) + " is taken for the batch");
    }
  }

  bool has_named_batch(const Input& input) const {
    for (std::size_t axis = 1; axis < input.symbols.size(); ++axis)
      if (input.symbols[axis] >= 0) {
        const Symbol& s = symbols_[static_cast<std::size_t>(input.symbols[axis])];
        if (meaning_by_name(s.name, axis) == DimMeaning::batch) return true;
      }
    return false;
  }

  /// The option binds every open dim of its meaning; dims that --dim or --shape bound stay, but one must be left.
  /// Without the option they follow a bound dim of the same meaning, when all those agree.
  void bind_meaning(DimMeaning meaning, std::optional<std::int64_t> option, std::string_view option_name) {
    const Symbol* bound = nullptr;
    bool agree = true, open = false;
    for (const Symbol& s : symbols_) {
      if (s.meaning != meaning) continue;
      open = open || !s.bound();
      if (!s.bound()) continue;
      agree = agree && (!bound || bound->value == s.value);
      bound = &s;
    }
    if (option) {
      if (!open && bound) {
        const bool matches = std::any_of(symbols_.begin(), symbols_.end(),
                                         [&](const Symbol& s) { return s.meaning == meaning && s.value == *option; });
        if (!matches)
          throw usage_error("the dimension " + display(*bound) + " is " + std::to_string(bound->value) + " by " +
                                bound->source + " and " + std::to_string(*option) + " by " + std::string(option_name),
                            file(), "give one of the two");
      }
      for (Symbol& s : symbols_)
        if (s.meaning == meaning && !s.bound()) set(s, *option, std::string(option_name));
      return;
    }
    if (!bound || !agree) return;
    const std::int64_t value = bound->value;
    const std::string source = bound->source;
    for (Symbol& s : symbols_)
      if (s.meaning == meaning && !s.bound()) {
        say(Severity::info, "dim-taken",
            "the dimension " + display(s) + " is taken as " + std::to_string(value) + ", as " + source + " says");
        set(s, value, source);
      }
  }

  /// A cache that nothing was said about is empty: the whole sequence is new.
  void bind_past() {
    std::int64_t past = 0;
    for (Symbol& s : symbols_) {
      if (s.meaning != DimMeaning::past) continue;
      if (!s.bound()) {
        say(Severity::warning, "past-assumed",
            "the cache is taken as empty: dimension " + display(s) + " = 0; give --dim " +
                (s.name.empty() ? "NAME" : s.name) + "=N for a filled one");
        set(s, 0, "assumed");
      }
      past = std::max(past, s.value);
    }
    std::optional<std::int64_t> sequence;
    for (const Symbol& s : symbols_)
      if (s.meaning == DimMeaning::sequence && s.bound() && !sequence) sequence = s.value;
    if (!sequence) sequence = bindings_.sequence;
    if (!sequence) return;
    for (Symbol& s : symbols_)
      if (!s.bound() && is_total_length(s.name)) set(s, checked_add(past, *sequence), "past and new tokens");
  }

  void bind_formulas() {
    for (Symbol& s : symbols_)
      if (!s.bound() && (s.formula || is_number_text(s.name)))
        if (const auto value = evaluate_dim(s.name, [this](std::string_view n) { return value_of(n); }))
          set(s, *value, "its formula");
    for (const Symbol& s : symbols_)
      if (s.formula && s.bound())
        if (const auto value = evaluate_dim(s.name, [this](std::string_view n) { return value_of(n); });
            value && *value != s.value)
          throw usage_error("the dimension " + display(s) + " is " + std::to_string(s.value) + " by " + s.source +
                                ", but its formula gives " + std::to_string(*value),
                            file());
  }
  static bool is_number_text(std::string_view text) { return parse_int(text).has_value(); }

  /// Height and width of what is plainly an image: [N, 1 or 3, H, W] or [N, H, W, 1 or 3].
  void assume_image_sides() {
    for (Symbol& s : symbols_) {
      if (s.bound() || s.meaning != DimMeaning::spatial) continue;
      const Input& input = inputs_[s.input];
      const auto& dims = input.declared->type.dims;
      if (dims.size() != 4) continue;
      const auto colours = [&](std::size_t axis) { return dims[axis].value == 1 || dims[axis].value == 3; };
      const bool image = (colours(1) && s.axis >= 2) || (colours(3) && (s.axis == 1 || s.axis == 2));
      if (!image) continue;
      say(Severity::warning, "image-size-assumed",
          "the dimension " + display(s) + " is taken as " + std::to_string(assumed_image_side) + "; give " +
              (s.name.empty() ? "--shape " + std::string(input.name) + "=…" : "--dim " + s.name + "=N"));
      set(s, assumed_image_side, "assumed");
    }
  }

  void require_all_bound() const {
    std::string open;
    for (const Symbol& s : symbols_)
      if (!s.bound()) open += (open.empty() ? "" : ", ") + display(s);
    for (const Input& i : inputs_)
      if (is_open_shape(i)) open += (open.empty() ? "" : ", ") + ("the shape of " + std::string(i.name));
    if (open.empty()) return;
    throw usage_error("the model leaves dimensions open that nothing binds: " + open, file(), "try: " + command());
  }

  static bool is_open_shape(const Input& i) {
    const auto kind = i.declared->type.kind;
    return !i.declared->type.has_shape && !i.shape_given &&
           (kind == DeclaredType::Kind::tensor || kind == DeclaredType::Kind::unknown);
  }

  /// A command that binds everything: what was given, and an example for the rest.
  std::string command() const {
    std::string c = "headroom estimate " + (file().empty() ? "MODEL.onnx" : file());
    const auto option = [&](std::string_view name, DimMeaning meaning, std::optional<std::int64_t> given,
                            std::int64_t example) {
      const bool open = std::any_of(symbols_.begin(), symbols_.end(),
                                    [&](const Symbol& s) { return s.meaning == meaning && !s.bound(); });
      if (given || open) c += " " + std::string(name) + " " + std::to_string(given.value_or(example));
    };
    option("--batch", DimMeaning::batch, bindings_.batch, 8);
    option("--seq", DimMeaning::sequence, bindings_.sequence, 128);
    for (const auto& [name, value] : bindings_.dims) c += " --dim " + name + "=" + std::to_string(value);
    for (const auto& [name, shape] : bindings_.shapes) c += " --shape " + name + "=" + times_text(shape);
    for (const Symbol& s : symbols_) {
      if (s.bound() || s.meaning == DimMeaning::batch || s.meaning == DimMeaning::sequence) continue;
      if (s.name.empty())
        c += " --shape " + std::string(inputs_[s.input].name) + "=" + times_text(example_shape(inputs_[s.input]));
      else if (!s.formula)
        c += " --dim " + s.name + "=" + (s.meaning == DimMeaning::spatial ? "64" : "16");
    }
    for (const Input& i : inputs_)
      if (is_open_shape(i)) c += " --shape " + std::string(i.name) + "=8x128";
    return c;
  }

  std::vector<std::int64_t> example_shape(const Input& input) const {
    std::vector<std::int64_t> shape = sizes_of(input);
    for (std::size_t axis = 0; axis < input.symbols.size(); ++axis)
      if (input.symbols[axis] >= 0) {
        const Symbol& s = symbols_[static_cast<std::size_t>(input.symbols[axis])];
        shape[axis] = s.bound() ? s.value : 16;
      }
    return shape;
  }

  bool has_meaning(DimMeaning meaning) const {
    return std::any_of(symbols_.begin(), symbols_.end(), [&](const Symbol& s) { return s.meaning == meaning; });
  }

  /// Sizes given or declared; -1 where the file leaves one open.
  static std::vector<std::int64_t> sizes_of(const Input& input) {
    if (input.shape_given) return input.given;
    std::vector<std::int64_t> sizes;
    if (holds_tensor(input.declared->type))
      for (const Dim& d : input.declared->type.dims) sizes.push_back(d.value);
    return sizes;
  }

  /// --batch on a file without an open batch: the fixed one must be it.
  void check_fixed_batch() {
    if (!bindings_.batch || has_meaning(DimMeaning::batch)) return;
    for (const Input& input : inputs_) {
      if (sizes_of(input).empty()) continue;
      check_fixed(input, 0, *bindings_.batch, "batch", "--batch");
      return;
    }
    say(Severity::info, "batch-ignored", "the model has no input with a batch dimension: --batch is ignored");
  }

  /// --seq on a file without an open sequence: that of its token ids must be it; other models have none.
  void check_fixed_sequence() {
    if (!bindings_.sequence || has_meaning(DimMeaning::sequence)) return;
    for (const Input& input : inputs_) {
      const DeclaredType& type = input.declared->type;
      if (sizes_of(input).size() != 2 || (type.dtype != DType::i64 && type.dtype != DType::i32)) continue;
      check_fixed(input, 1, *bindings_.sequence, "sequence length", "--seq");
      return;
    }
    say(Severity::info, "seq-ignored", "the model has no sequence dimension: --seq is ignored");
  }

  void check_fixed(const Input& input, std::size_t axis, std::int64_t wanted, std::string_view what,
                   std::string_view option) {
    std::vector<std::int64_t> shape = example_shape(input);
    const std::int64_t size = shape[axis];
    if (size == wanted) {
      fixed_.push_back({std::string(input.name) + "[" + std::to_string(axis) + "]", size,
                        axis == 0 ? DimMeaning::batch : DimMeaning::sequence, "fixed by the file"});
      return;
    }
    shape[axis] = wanted;
    throw usage_error("the file fixes the " + std::string(what) + " to " + std::to_string(size) + " (axis " +
                          std::to_string(axis) + " of " + std::string(input.name) + "); " + std::string(option) + " " +
                          std::to_string(wanted) + " cannot change it",
                      file(),
                      "export it with that axis dynamic (torch.onnx.export's dynamic_shapes, or models/export.py), or "
                      "try --shape " +
                          std::string(input.name) + "=" + times_text(shape));
  }

  void finish() {
    for (const Input& input : inputs_) {
      const DeclaredType& type = input.declared->type;
      ShapedValue& value = graph_.values[input.declared->value.at()];
      value.dtype = type.dtype;
      if (type.kind == DeclaredType::Kind::optional && !input.shape_given && !type.has_shape) {
        value.kind = ShapedValue::Kind::optional_none;
        say(Severity::info, "optional-input-absent", "the optional input " + std::string(input.name) + " is not given");
        continue;
      }
      if (!holds_tensor(type)) {
        value.kind = ShapedValue::Kind::sequence;
        value.elements = std::make_shared<const std::vector<ShapedValue>>();
        say(Severity::warning, "sequence-input-empty",
            "how many tensors the input " + std::string(input.name) + " holds is not in the file: taken as none");
        continue;
      }
      ShapedInput shaped;
      shaped.value = input.declared->value;
      shaped.name = input.name;
      shaped.dtype = type.dtype;
      shaped.shape_given = input.shape_given;
      const std::vector<std::int64_t> sizes = sizes_of(input);
      for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
        const int s = axis < input.symbols.size() ? input.symbols[axis] : -1;
        const Symbol* open = s < 0 ? nullptr : &symbols_[static_cast<std::size_t>(s)];
        shaped.dims.push_back(open ? open->value : sizes[axis]);
        if (open && open->meaning == DimMeaning::batch && shaped.batch_axis < 0)
          shaped.batch_axis = static_cast<int>(axis);
        if (open && open->meaning == DimMeaning::sequence && shaped.sequence_axis < 0)
          shaped.sequence_axis = static_cast<int>(axis);
      }
      if (type.kind == DeclaredType::Kind::unknown) {
        shaped.dtype = value.dtype = DType::f32;
        say(Severity::warning, "input-type-assumed",
            "the file gives the input " + std::string(input.name) + " no type: taken as float32");
      }
      if (const std::string problem = size_problem(shaped.dtype, shaped.dims); !problem.empty())
        throw bad_input("the input " + std::string(input.name) + " would be " + text_of(shaped.dims) + ", " + problem,
                        file(), "check the file's dimensions and what binds them");
      value.kind = ShapedValue::Kind::tensor;
      value.dims = shaped.dims;
      graph_.inputs.push_back(std::move(shaped));
    }
    for (const Symbol& s : symbols_)
      graph_.dims.push_back(
          {s.name.empty() ? std::string(inputs_[s.input].name) + "[" + std::to_string(s.axis) + "]" : s.name, s.value,
           s.meaning == DimMeaning::unknown ? DimMeaning::other : s.meaning, s.source});
    graph_.dims.insert(graph_.dims.end(), fixed_.begin(), fixed_.end());
  }

  void say(Severity severity, std::string code, std::string message) const {
    graph_.diagnostics.push_back({std::move(code), severity, {}, std::move(message), Bytes{}});
  }

  ShapedGraph& graph_;
  const Bindings& bindings_;
  std::vector<Input> inputs_;
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string_view, int> by_name_;  ///< index into symbols_
  std::vector<BoundDim> fixed_;
};

}  // namespace

void bind_inputs(ShapedGraph& graph, const Bindings& bindings) { DimBinder(graph, bindings).run(); }

}  // namespace headroom
