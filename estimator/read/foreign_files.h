// foreign_files: what a file is that is no ONNX model.
#pragma once

#include <string>
#include <string_view>

namespace headroom {

struct ForeignFile {
  std::string what;  ///< "a text file"; empty when nothing is recognised
  std::string hint;
};

/// Looks at the first bytes of a file that could not be read.
ForeignFile recognise(std::string_view bytes);

}  // namespace headroom
