#include "estimator/cli/commands/documents.h"

#include <unistd.h>

#include "estimator/cli/output.h"

namespace headroom::cli {

void write_document(const report::GridDocument& document, const Options& o) {
  if (o.format == "md")
    write_result(report::grid_markdown(document), o.output);
  else if (o.format == "latex")
    write_result(report::grid_latex(document), o.output);
  else if (o.format == "html")
    write_result(report::grid_html(document), o.output);
  else
    write_result(report::grid_table(document, {.colours = o.output.empty() && colours_wanted(STDOUT_FILENO),
                                               .width = terminal_width()}),
                 o.output);
}

}  // namespace headroom::cli
