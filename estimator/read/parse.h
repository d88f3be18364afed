// parse: protobuf wire of an ONNX file -> ModelDraft.
#pragma once

#include <string>
#include <string_view>

#include "estimator/read/arena.h"
#include "estimator/read/draft.h"
#include "estimator/read/names.h"
#include "estimator/read/progress.h"

namespace headroom {

/// Where drafts go, and what watches over their making.
struct ParseContext {
  std::string_view file;  ///< name of the file, for messages
  CountedMemory& heap;    ///< lists in the making
  Arena& kept;            ///< what the Graph shares with the draft: attributes, tensors, dims
  Arena& scratch;         ///< drafts
  bool copy_text;         ///< keep names apart from the file (whose pages are forgotten when it is large)
  Names& names;
  Progress& progress;
  Diagnostics& diagnostics;
  const ReadLimits& limits;
};

/// Throws WireError where the bytes are no ONNX, Error where a tensor is impossible.
ModelDraft parse_model(std::string_view bytes, const ParseContext& context);

}  // namespace headroom
