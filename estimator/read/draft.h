// Draft: what the file says, message by message, before names are resolved and functions inlined.
#pragma once

#include <cstdint>
#include <memory_resource>
#include <span>
#include <string_view>
#include <vector>

#include "estimator/read/arena.h"
#include "estimator/read/graph.h"
#include "estimator/read/names.h"

namespace headroom {

struct GraphDraft;

/// An attribute that is complete only once its node's place is known: it holds graphs, or stands for an attribute of
/// the function around it.
struct DeferredAttribute {
  std::size_t position = 0;    ///< in AttributeDrafts::attributes
  std::string_view reference;  ///< `ref_attr_name`
  std::span<const GraphDraft* const> graphs;
};

struct AttributeDrafts {
  std::span<const Attribute> attributes;
  std::span<const DeferredAttribute> deferred;
};

struct NodeDraft {
  std::string_view name;
  std::string_view op_type;
  std::string_view domain;
  std::string_view overload;
  std::span<const Symbol> inputs;
  std::span<const Symbol> outputs;
  AttributeDrafts attributes;
  NodeMetadata metadata;
};

/// By pointer: a draft stays where it was made, and lists of them are short to move.
using NodeDrafts = std::span<const NodeDraft* const>;

struct ValueDraft {
  Symbol name;
  DeclaredType type;
};

struct InitializerDraft {
  Symbol name;
  Initializer initializer;
};

struct GraphDraft {
  std::string_view name;
  NodeDrafts nodes;
  std::span<const ValueDraft> inputs;
  std::span<const ValueDraft> outputs;
  std::span<const InitializerDraft> initializers;
};

struct OpsetImport {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionDraft {
  std::string_view domain;
  std::string_view name;
  std::string_view overload;
  std::span<const Symbol> inputs;
  std::span<const Symbol> outputs;
  NodeDrafts nodes;
  AttributeDrafts defaults;
  std::int64_t standard_opset = 0;  ///< 0: it imports none
};

struct ModelDraft {
  explicit ModelDraft(std::pmr::memory_resource* memory) : opsets(memory), functions(memory) {}

  std::int64_t ir_version = 0;
  std::string_view producer;
  std::string_view producer_version;
  std::pmr::vector<OpsetImport> opsets;
  const GraphDraft* graph = nullptr;
  bool uses_standard_operators = false;
  std::pmr::vector<FunctionDraft> functions;
};

}  // namespace headroom
