#include "estimator/read/parse.h"

#include <onnx-ml.pb.h>

#include <utility>

#include "estimator/base/dims.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/read/typed_data.h"
#include "estimator/read/wire.h"

namespace headroom {
namespace {

constexpr std::int64_t decoded_bytes_limit = 64 * KiB;
constexpr std::size_t max_rank = 64;  // PyTorch's
constexpr const char* damaged_hint = "the file is damaged: export it again";

std::string_view standard_domain_as_empty(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view{} : domain;
}

struct Entry {
  std::string_view key;
  std::string_view value;
};

Entry parse_entry(std::string_view message) {
  Entry entry;
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(onnx::StringStringEntryProto::kKeyFieldNumber):
        entry.key = field.bytes;
        break;
      case bytes_field(onnx::StringStringEntryProto::kValueFieldNumber):
        entry.value = field.bytes;
        break;
      default:
        break;
    }
  }
  return entry;
}

Attribute::Kind kind_of(std::uint64_t attribute_type) {
  using Kind = Attribute::Kind;
  switch (attribute_type) {
    case onnx::AttributeProto::FLOAT:
      return Kind::real;
    case onnx::AttributeProto::INT:
      return Kind::integer;
    case onnx::AttributeProto::STRING:
      return Kind::text;
    case onnx::AttributeProto::SPARSE_TENSOR:
    case onnx::AttributeProto::TENSOR:
      return Kind::tensor;
    case onnx::AttributeProto::GRAPH:
      return Kind::graph;
    case onnx::AttributeProto::FLOATS:
      return Kind::reals;
    case onnx::AttributeProto::INTS:
      return Kind::integers;
    case onnx::AttributeProto::STRINGS:
      return Kind::texts;
    case onnx::AttributeProto::SPARSE_TENSORS:
    case onnx::AttributeProto::TENSORS:
      return Kind::tensors;
    case onnx::AttributeProto::GRAPHS:
      return Kind::graphs;
    default:
      return Kind::none;
  }
}

class Parser {
 public:
  explicit Parser(const ParseContext& context) : context_(context) {}

  ModelDraft model(std::string_view message);

 private:
  const GraphDraft* graph(std::string_view message, int depth);
  const NodeDraft* node(std::string_view message, int depth);
  void attribute(std::string_view message, int depth, Gathered<Attribute>& list, Gathered<DeferredAttribute>& deferred);
  FunctionDraft function(std::string_view message);
  ValueDraft value_info(std::string_view message);
  DeclaredType declared_type(std::string_view message);
  void tensor_type(std::string_view message, DeclaredType& type);
  void check_declared(const ValueDraft& value, std::string_view name) const;
  Dim dimension(std::string_view message);
  TensorData tensor(std::string_view message);
  InitializerDraft initializer(std::string_view message);
  InitializerDraft sparse_initializer(std::string_view message);
  OpsetImport opset(std::string_view message);
  void metadata(std::string_view message, NodeMetadata& metadata);

  void locate_data(std::string_view message, std::string_view raw, bool has_typed_fields, std::int64_t expected,
                   TensorData& tensor);
  DType dtype(std::uint64_t code, std::string_view tensor_name);
  std::int64_t count_of(const TensorData& tensor) const;
  std::int64_t size_of(const TensorData& tensor) const;
  std::string where(std::string_view tensor_name) const;
  void note(std::string code, std::string message);

  std::string_view text(std::string_view bytes) { return context_.copy_text ? copied(bytes, context_.kept) : bytes; }
  Symbol symbol(std::string_view name) { return context_.names.symbol_of(name); }

  const ParseContext& context_;
  std::int64_t nodes_seen_ = 0;
  bool uses_standard_operators_ = false;

  // Lists in the making (see Gathered).
  template <class T>
  using Stack = std::pmr::vector<T>;
  Stack<const NodeDraft*> nodes_{&context_.heap};
  Stack<ValueDraft> graph_inputs_{&context_.heap};
  Stack<ValueDraft> graph_outputs_{&context_.heap};
  Stack<InitializerDraft> initializers_{&context_.heap};
  Stack<Symbol> inputs_{&context_.heap};
  Stack<Symbol> outputs_{&context_.heap};
  Stack<Attribute> attributes_{&context_.heap};
  Stack<DeferredAttribute> deferred_{&context_.heap};
  Stack<Dim> dims_{&context_.heap};
  Stack<std::int64_t> integers_{&context_.heap};
  Stack<float> reals_{&context_.heap};
  Stack<std::string_view> texts_{&context_.heap};
  Stack<TensorData> tensors_{&context_.heap};
  Stack<const GraphDraft*> graphs_{&context_.heap};
};

void add_packed_integers(std::string_view bytes, Gathered<std::int64_t>& to) {
  for (Wire values(bytes); !values.done();) to.add(static_cast<std::int64_t>(values.varint()));
}

ModelDraft Parser::model(std::string_view message) {
  using Proto = onnx::ModelProto;
  ModelDraft draft(&context_.heap);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case varint_field(Proto::kIrVersionFieldNumber):
        draft.ir_version = field.integer();
        break;
      case bytes_field(Proto::kProducerNameFieldNumber):
        draft.producer = text(field.bytes);
        break;
      case bytes_field(Proto::kProducerVersionFieldNumber):
        draft.producer_version = text(field.bytes);
        break;
      case bytes_field(Proto::kOpsetImportFieldNumber):
        draft.opsets.push_back(opset(field.bytes));
        break;
      case bytes_field(Proto::kFunctionsFieldNumber):
        draft.functions.push_back(function(field.bytes));
        break;
      case bytes_field(Proto::kGraphFieldNumber):
        if (draft.graph != nullptr) throw WireError{field.begin, "a second graph"};
        draft.graph = graph(field.bytes, 0);
        break;
      default:
        break;
    }
  }
  draft.uses_standard_operators = uses_standard_operators_;
  if (draft.graph == nullptr) throw WireError{message.data(), "it has no graph"};
  return draft;
}

const GraphDraft* Parser::graph(std::string_view message, int depth) {
  using Proto = onnx::GraphProto;
  if (depth > context_.limits.max_depth)
    throw WireError{message.data(), "sub-graphs are nested too deep",
                    "no exporter nests like this: the file is damaged"};
  GraphDraft draft;
  Gathered nodes(nodes_);
  Gathered initializers(initializers_);
  Gathered inputs(graph_inputs_);
  Gathered outputs(graph_outputs_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(Proto::kNodeFieldNumber):
        nodes.add(node(field.bytes, depth));
        break;
      case bytes_field(Proto::kNameFieldNumber):
        draft.name = text(field.bytes);
        break;
      case bytes_field(Proto::kInitializerFieldNumber):
        initializers.add(initializer(field.bytes));
        break;
      case bytes_field(Proto::kSparseInitializerFieldNumber):
        initializers.add(sparse_initializer(field.bytes));
        break;
      case bytes_field(Proto::kInputFieldNumber):
        inputs.add(value_info(field.bytes));
        break;
      case bytes_field(Proto::kOutputFieldNumber):
        outputs.add(value_info(field.bytes));
        break;
      default:
        break;
    }
  }
  draft.nodes = nodes.kept_in(context_.scratch);
  draft.initializers = initializers.kept_in(context_.scratch);
  draft.inputs = inputs.kept_in(context_.scratch);
  draft.outputs = outputs.kept_in(context_.scratch);
  return copied(draft, context_.scratch);
}

const NodeDraft* Parser::node(std::string_view message, int depth) {
  using Proto = onnx::NodeProto;
  if (++nodes_seen_ > context_.limits.max_nodes_after_inlining) throw WireError{message.data(), "too many nodes"};
  NodeDraft draft;
  Gathered inputs(inputs_);
  Gathered outputs(outputs_);
  Gathered attributes(attributes_);
  Gathered deferred(deferred_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(Proto::kInputFieldNumber):
        inputs.add(symbol(field.bytes));
        break;
      case bytes_field(Proto::kOutputFieldNumber):
        outputs.add(symbol(field.bytes));
        break;
      case bytes_field(Proto::kNameFieldNumber):
        draft.name = text(field.bytes);
        break;
      case bytes_field(Proto::kOpTypeFieldNumber):
        draft.op_type = text(field.bytes);
        break;
      case bytes_field(Proto::kDomainFieldNumber):
        draft.domain = standard_domain_as_empty(text(field.bytes));
        break;
      case bytes_field(Proto::kOverloadFieldNumber):
        draft.overload = text(field.bytes);
        break;
      case bytes_field(Proto::kAttributeFieldNumber):
        attribute(field.bytes, depth, attributes, deferred);
        break;
      case bytes_field(Proto::kMetadataPropsFieldNumber):
        metadata(field.bytes, draft.metadata);
        break;
      default:
        break;
    }
  }
  uses_standard_operators_ |= draft.domain.empty();
  draft.inputs = inputs.kept_in(context_.scratch);
  draft.outputs = outputs.kept_in(context_.scratch);
  draft.attributes.attributes = attributes.kept_in(context_.kept);
  draft.attributes.deferred = deferred.kept_in(context_.scratch);
  return copied(draft, context_.scratch);
}

void Parser::metadata(std::string_view message, NodeMetadata& metadata) {
  const Entry entry = parse_entry(message);
  std::string_view* const kept = entry.key == "pkg.torch.onnx.fx_node"              ? &metadata.fx_node
                                 : entry.key == "pkg.torch.onnx.name_scopes"        ? &metadata.name_scopes
                                 : entry.key == "pkg.torch.onnx.class_hierarchy"    ? &metadata.class_hierarchy
                                 : entry.key == "pkg.torch.onnx.stack_trace"        ? &metadata.stack_trace
                                 : entry.key == "pkg.onnxscript.rewriter.rule_name" ? &metadata.rewriter_rule
                                                                                    : nullptr;
  if (kept != nullptr) *kept = text(entry.value);
}

void Parser::attribute(std::string_view message, int depth, Gathered<Attribute>& list,
                       Gathered<DeferredAttribute>& deferred) {
  using Proto = onnx::AttributeProto;
  using Kind = Attribute::Kind;
  Attribute draft;
  DeferredAttribute later;
  Kind declared = Kind::none;
  Kind seen = Kind::none;
  Gathered reals(reals_);
  Gathered integers(integers_);
  Gathered texts(texts_);
  Gathered tensors(tensors_);
  Gathered graphs(graphs_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(Proto::kNameFieldNumber):
        draft.name = text(field.bytes);
        break;
      case bytes_field(Proto::kRefAttrNameFieldNumber):
        later.reference = text(field.bytes);
        break;
      case varint_field(Proto::kTypeFieldNumber):
        declared = kind_of(field.number);
        break;
      case fixed32_field(Proto::kFFieldNumber):
        draft.real = static_cast<double>(field.real());
        seen = Kind::real;
        break;
      case varint_field(Proto::kIFieldNumber):
        draft.integer = field.integer();
        seen = Kind::integer;
        break;
      case bytes_field(Proto::kSFieldNumber):
        draft.text = text(field.bytes);
        seen = Kind::text;
        break;
      case bytes_field(Proto::kTFieldNumber):
        tensors.add(tensor(field.bytes));
        seen = Kind::tensor;
        break;
      case bytes_field(Proto::kSparseTensorFieldNumber):
        tensors.add(sparse_initializer(field.bytes).initializer.tensor);
        seen = Kind::tensor;
        break;
      case bytes_field(Proto::kGFieldNumber):
        graphs.add(graph(field.bytes, depth + 1));
        seen = Kind::graph;
        break;
      case fixed32_field(Proto::kFloatsFieldNumber):
        reals.add(field.real());
        seen = Kind::reals;
        break;
      case bytes_field(Proto::kFloatsFieldNumber):
        for (Wire values(field.bytes); !values.done();) reals.add(values.fixed<float>());
        seen = Kind::reals;
        break;
      case varint_field(Proto::kIntsFieldNumber):
        integers.add(field.integer());
        seen = Kind::integers;
        break;
      case bytes_field(Proto::kIntsFieldNumber):
        add_packed_integers(field.bytes, integers);
        seen = Kind::integers;
        break;
      case bytes_field(Proto::kStringsFieldNumber):
        texts.add(text(field.bytes));
        seen = Kind::texts;
        break;
      case bytes_field(Proto::kTensorsFieldNumber):
        tensors.add(tensor(field.bytes));
        seen = Kind::tensors;
        break;
      case bytes_field(Proto::kGraphsFieldNumber):
        graphs.add(graph(field.bytes, depth + 1));
        seen = Kind::graphs;
        break;
      default:
        break;
    }
  }
  draft.kind = declared != Kind::none ? declared : seen;
  draft.reals = reals.kept_in(context_.kept);
  draft.integers = integers.kept_in(context_.kept);
  draft.texts = texts.kept_in(context_.kept);
  draft.tensors = tensors.kept_in(context_.kept);
  if (draft.kind == Kind::tensor && !draft.tensors.empty()) draft.tensor = &draft.tensors.back();
  later.graphs = graphs.kept_in(context_.scratch);
  if (!later.reference.empty() || !later.graphs.empty()) {
    later.position = list.items().size();
    deferred.add(later);
  }
  list.add(draft);
}

FunctionDraft Parser::function(std::string_view message) {
  using Proto = onnx::FunctionProto;
  FunctionDraft draft;
  Gathered nodes(nodes_);
  Gathered inputs(inputs_);
  Gathered outputs(outputs_);
  Gathered defaults(attributes_);
  Gathered deferred(deferred_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(Proto::kNameFieldNumber):
        draft.name = text(field.bytes);
        break;
      case bytes_field(Proto::kDomainFieldNumber):
        draft.domain = standard_domain_as_empty(text(field.bytes));
        break;
      case bytes_field(Proto::kOverloadFieldNumber):
        draft.overload = text(field.bytes);
        break;
      case bytes_field(Proto::kInputFieldNumber):
        inputs.add(symbol(field.bytes));
        break;
      case bytes_field(Proto::kOutputFieldNumber):
        outputs.add(symbol(field.bytes));
        break;
      case bytes_field(Proto::kAttributeProtoFieldNumber):
        attribute(field.bytes, 0, defaults, deferred);
        break;
      case bytes_field(Proto::kNodeFieldNumber):
        nodes.add(node(field.bytes, 0));
        break;
      case bytes_field(Proto::kOpsetImportFieldNumber):
        if (const OpsetImport import = opset(field.bytes); import.domain.empty()) draft.standard_opset = import.version;
        break;
      default:
        break;
    }
  }
  draft.nodes = nodes.kept_in(context_.scratch);
  draft.inputs = inputs.kept_in(context_.scratch);
  draft.outputs = outputs.kept_in(context_.scratch);
  draft.defaults = {defaults.kept_in(context_.kept), deferred.kept_in(context_.scratch)};
  return draft;
}

OpsetImport Parser::opset(std::string_view message) {
  OpsetImport import;
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(onnx::OperatorSetIdProto::kDomainFieldNumber):
        import.domain = standard_domain_as_empty(text(field.bytes));
        break;
      case varint_field(onnx::OperatorSetIdProto::kVersionFieldNumber):
        import.version = field.integer();
        break;
      default:
        break;
    }
  }
  return import;
}

ValueDraft Parser::value_info(std::string_view message) {
  ValueDraft draft;
  std::string_view name;
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case bytes_field(onnx::ValueInfoProto::kNameFieldNumber):
        name = field.bytes;
        draft.name = symbol(name);
        break;
      case bytes_field(onnx::ValueInfoProto::kTypeFieldNumber):
        draft.type = declared_type(field.bytes);
        break;
      default:
        break;
    }
  }
  check_declared(draft, name);
  return draft;
}

void Parser::check_declared(const ValueDraft& value, std::string_view name) const {
  for (const Dim& dim : value.type.dims)
    if (dim.value < -1)
      throw bad_input("a negative dimension: " + std::to_string(dim.value), where(name), damaged_hint);
  if (value.type.dims.size() > max_rank)
    throw bad_input("it has " + std::to_string(value.type.dims.size()) + " dimensions", where(name), damaged_hint);
}

/// The outermost kind; dtype and shape of the tensor inside. Types may nest to any depth, so this descends in a loop.
DeclaredType Parser::declared_type(std::string_view message) {
  using Proto = onnx::TypeProto;
  using Kind = DeclaredType::Kind;
  DeclaredType type;
  const auto found = [&type](Kind kind) {
    if (type.kind == Kind::unknown) type.kind = kind;
  };
  std::string_view inner = message;
  while (inner.data() != nullptr) {
    for (const Field& field : Fields(std::exchange(inner, {}))) {
      switch (field.key) {
        case bytes_field(Proto::kTensorTypeFieldNumber):
          found(Kind::tensor);
          tensor_type(field.bytes, type);
          break;
        case bytes_field(Proto::kSparseTensorTypeFieldNumber):
          found(Kind::sparse_tensor);
          tensor_type(field.bytes, type);
          break;
        case bytes_field(Proto::kSequenceTypeFieldNumber):
        case bytes_field(Proto::kOptionalTypeFieldNumber):
          found(field.key == bytes_field(Proto::kSequenceTypeFieldNumber) ? Kind::sequence : Kind::optional);
          static_assert(int{onnx::TypeProto_Sequence::kElemTypeFieldNumber} ==
                        onnx::TypeProto_Optional::kElemTypeFieldNumber);
          for (const Field& element : Fields(field.bytes))
            if (element.key == bytes_field(onnx::TypeProto_Sequence::kElemTypeFieldNumber)) inner = element.bytes;
          break;
        case bytes_field(Proto::kMapTypeFieldNumber):
          found(Kind::map);
          break;
        default:
          break;
      }
    }
  }
  return type;
}

void Parser::tensor_type(std::string_view message, DeclaredType& type) {
  using Proto = onnx::TypeProto_Tensor;
  static_assert(int{Proto::kElemTypeFieldNumber} == onnx::TypeProto_SparseTensor::kElemTypeFieldNumber &&
                int{Proto::kShapeFieldNumber} == onnx::TypeProto_SparseTensor::kShapeFieldNumber);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case varint_field(Proto::kElemTypeFieldNumber):
        type.dtype = field.number == 0 ? DType::undefined : dtype(field.number, {});
        break;
      case bytes_field(Proto::kShapeFieldNumber): {
        type.has_shape = true;
        Gathered dims(dims_);
        for (const Field& dim : Fields(field.bytes))
          if (dim.key == bytes_field(onnx::TensorShapeProto::kDimFieldNumber)) dims.add(dimension(dim.bytes));
        type.dims = dims.kept_in(context_.kept);
        break;
      }
      default:
        break;
    }
  }
}

/// Exporters write -1 for "any".
Dim Parser::dimension(std::string_view message) {
  using Proto = onnx::TensorShapeProto_Dimension;
  Dim dim;
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case varint_field(Proto::kDimValueFieldNumber):
        dim = {field.integer(), {}};
        break;
      case bytes_field(Proto::kDimParamFieldNumber):
        dim = {-1, text(field.bytes)};
        break;
      default:
        break;
    }
  }
  return dim;
}

TensorData Parser::tensor(std::string_view message) {
  using Proto = onnx::TensorProto;
  TensorData draft;
  std::uint64_t dtype_code = 0;
  std::string_view raw;
  bool has_typed_fields = false;
  bool is_external = false;
  Gathered dims(integers_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case varint_field(Proto::kDimsFieldNumber):
        dims.add(field.integer());
        break;
      case bytes_field(Proto::kDimsFieldNumber):
        add_packed_integers(field.bytes, dims);
        break;
      case varint_field(Proto::kDataTypeFieldNumber):
        dtype_code = field.number;
        break;
      case bytes_field(Proto::kNameFieldNumber):
        draft.name = text(field.bytes);
        break;
      case bytes_field(Proto::kRawDataFieldNumber):
        context_.progress.pass(field.bytes);
        raw = field.bytes;
        break;
      case bytes_field(Proto::kFloatDataFieldNumber):
      case bytes_field(Proto::kInt32DataFieldNumber):
      case bytes_field(Proto::kStringDataFieldNumber):
      case bytes_field(Proto::kInt64DataFieldNumber):
      case bytes_field(Proto::kDoubleDataFieldNumber):
      case bytes_field(Proto::kUint64DataFieldNumber):
        context_.progress.pass(field.bytes);
        has_typed_fields = true;
        break;
      case fixed32_field(Proto::kFloatDataFieldNumber):
      case varint_field(Proto::kInt32DataFieldNumber):
      case varint_field(Proto::kInt64DataFieldNumber):
      case fixed64_field(Proto::kDoubleDataFieldNumber):
      case varint_field(Proto::kUint64DataFieldNumber):
        has_typed_fields = true;
        break;
      case varint_field(Proto::kDataLocationFieldNumber):
        is_external = field.number == Proto::EXTERNAL;
        break;
      case bytes_field(Proto::kExternalDataFieldNumber): {
        const Entry entry = parse_entry(field.bytes);
        if (entry.key == "location") draft.location = text(entry.value);
        if (entry.key == "offset") draft.offset = parse_int(entry.value).value_or(-1);
        if (entry.key == "length") draft.length = parse_int(entry.value).value_or(-1);
        break;
      }
      default:
        break;
    }
  }
  if (dims.items().size() > max_rank)
    throw bad_input("it has " + std::to_string(dims.items().size()) + " dimensions", where(draft.name), damaged_hint);
  draft.dims = dims.kept_in(context_.kept);
  draft.dtype = dtype(dtype_code, draft.name);
  const std::int64_t expected = size_of(draft);
  if (is_external)
    draft.where = draft.location.empty() ? TensorData::Where::nowhere : TensorData::Where::external;
  else
    locate_data(message, raw, has_typed_fields, expected, draft);
  return draft;
}

/// Sets `where` and `bytes`. What they hold is exactly what dims and dtype ask for, `expected` bytes, or they hold
/// nothing.
void Parser::locate_data(std::string_view message, std::string_view raw, bool has_typed_fields, std::int64_t expected,
                         TensorData& tensor) {
  using Where = TensorData::Where;
  if (expected == 0) {
    tensor.where = tensor.dtype == DType::string && has_typed_fields ? Where::typed : Where::raw;
  } else if (static_cast<std::uint64_t>(expected) == raw.size() && !has_typed_fields) {
    tensor.where = Where::raw;
    // Touched later, a small tensor in a large file would bring back the pages around it.
    const bool copy = context_.copy_text && expected <= decoded_bytes_limit;
    tensor.bytes = std::as_bytes(std::span<const char>(copy ? copied(raw, context_.kept) : raw));
  } else if (raw.empty() && has_typed_fields && expected > decoded_bytes_limit) {
    tensor.where = Where::typed;
  } else if (raw.empty() && has_typed_fields) {
    tensor.bytes = decode_typed_data(message, tensor.dtype, static_cast<std::size_t>(expected), context_.kept);
    tensor.where = tensor.bytes.empty() ? Where::nowhere : Where::decoded;
  }
  if (tensor.where == Where::nowhere && (!raw.empty() || has_typed_fields))
    note("tensor-data-mismatch",
         "tensor '" + printable(tensor.name) + "' should take " + std::to_string(expected) +
             " bytes by its dims and type, but the file holds another number of them; its values are not used");
}

InitializerDraft Parser::initializer(std::string_view message) {
  InitializerDraft draft;
  TensorData& data = draft.initializer.tensor;
  data = tensor(message);
  draft.name = symbol(data.name);
  return draft;
}

InitializerDraft Parser::sparse_initializer(std::string_view message) {
  using Proto = onnx::SparseTensorProto;
  InitializerDraft draft;
  TensorData& dense = draft.initializer.tensor;
  draft.initializer.sparse = true;
  Gathered dims(integers_);
  for (const Field& field : Fields(message)) {
    switch (field.key) {
      case varint_field(Proto::kDimsFieldNumber):
        dims.add(field.integer());
        break;
      case bytes_field(Proto::kDimsFieldNumber):
        add_packed_integers(field.bytes, dims);
        break;
      case bytes_field(Proto::kValuesFieldNumber): {
        const TensorData values = tensor(field.bytes);
        dense.name = values.name;
        dense.dtype = values.dtype;
        draft.initializer.stored_count = count_of(values);
        break;
      }
      case bytes_field(Proto::kIndicesFieldNumber):
        tensor(field.bytes);
        break;  // only to pass its payload
      default:
        break;
    }
  }
  dense.dims = dims.kept_in(context_.kept);
  size_of(dense);
  draft.name = symbol(dense.name);
  return draft;
}

DType Parser::dtype(std::uint64_t code, std::string_view name) {
  if (known_dtype(static_cast<std::int64_t>(code))) return static_cast<DType>(code);
  note("unknown-dtype", "'" + printable(name) + "' has element type " + std::to_string(code) +
                            ", which this version does not know; counted as one byte an element");
  return DType::u8;
}

std::int64_t Parser::count_of(const TensorData& tensor) const {
  for (const std::int64_t dim : tensor.dims)
    if (dim < 0) throw bad_input("a negative dimension: " + std::to_string(dim), where(tensor.name), damaged_hint);
  return element_count(Dims(tensor.dims.begin(), tensor.dims.end()));
}

/// Bytes of the whole dense tensor. Throws Error when its dimensions cannot be.
std::int64_t Parser::size_of(const TensorData& tensor) const {
  try {
    return bytes_of(tensor.dtype, count_of(tensor)).count();
  } catch (const SizeOverflow&) {
    throw bad_input("its dimensions " + text_of(Dims(tensor.dims.begin(), tensor.dims.end())) + " overflow 64 bits",
                    where(tensor.name), damaged_hint);
  }
}

std::string Parser::where(std::string_view tensor_name) const {
  return std::string(context_.file) + ", tensor '" + printable(tensor_name) + "'";
}

void Parser::note(std::string code, std::string message) {
  constexpr std::size_t enough = 100;  // a damaged file could fill memory with them
  if (context_.diagnostics.size() < enough)
    context_.diagnostics.push_back({std::move(code), Severity::warning, {}, std::move(message)});
}

}  // namespace

ModelDraft parse_model(std::string_view bytes, const ParseContext& context) { return Parser(context).model(bytes); }

}  // namespace headroom
