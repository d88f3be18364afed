// Grid: a table of text, and a few of them with their notes as one document. What every format of a table that people
// read (terminal, Markdown, LaTeX, HTML) is printed from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/report/style.h"

namespace headroom::report {

struct GridCell {
  enum class Verdict : std::uint8_t { none, fits, does_not_fit, failed };
  std::string text;
  Verdict verdict = Verdict::none;
  double heat = -1;  ///< 0..1 of what there is; below 0: none
};

struct GridColumn {
  std::string heading;
  bool number = true;  ///< set flush right
  bool key = false;    ///< names the row
};

struct Grid {
  std::string title;
  std::string across;               ///< what the headings of the columns that are no keys are values of; may be empty
  std::vector<GridColumn> columns;  ///< keys first
  std::vector<std::vector<GridCell>> rows;
};

struct GridDocument {
  std::string title;
  std::string subtitle;
  std::vector<Grid> grids;
  std::vector<std::string> notes;
};

/// In the terminal's width: what is wider is cut into blocks of columns, each with the keys again.
std::string grid_table(const GridDocument& document, const TableStyle& style);
std::string grid_markdown(const GridDocument& document);
std::string grid_markdown(const Grid& grid);
/// A `table` for each grid; needs booktabs.
std::string grid_latex(const GridDocument& document);
/// The tabular alone.
std::string grid_latex(const Grid& grid);
/// One file without scripts, and without anything from elsewhere.
std::string grid_html(const GridDocument& document);
/// A figure of that page.
std::string grid_html(const Grid& grid);

}  // namespace headroom::report
