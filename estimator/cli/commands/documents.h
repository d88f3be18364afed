// Documents of tables, in the format that was asked for.
#pragma once

#include "estimator/cli/options.h"
#include "estimator/report/grid.h"

namespace headroom::cli {

/// --format table, md, latex or html, to -o.
void write_document(const report::GridDocument& document, const Options& o);

}  // namespace headroom::cli
