// Document: headings, text, tables and pictures in a row. A whole file in each format.
#pragma once

#include <string>
#include <vector>

#include "estimator/report/grid.h"
#include "estimator/report/picture.h"

namespace headroom::report {

struct Block {
  enum class Kind { heading, paragraph, list, code, table, picture };
  Kind kind = Kind::paragraph;
  std::vector<std::string> lines;  ///< heading, paragraph: one; list: an item each; code: as they are
  Grid grid;
  Picture picture;
};

struct Document {
  std::string title, subtitle;
  std::vector<Block> blocks;

  void heading(std::string text) { blocks.push_back({Block::Kind::heading, {std::move(text)}, {}, {}}); }
  void paragraph(std::string text) { blocks.push_back({Block::Kind::paragraph, {std::move(text)}, {}, {}}); }
  void list(std::vector<std::string> items) { blocks.push_back({Block::Kind::list, std::move(items), {}, {}}); }
  void code(std::vector<std::string> lines) { blocks.push_back({Block::Kind::code, std::move(lines), {}, {}}); }
  void table(Grid grid) { blocks.push_back({Block::Kind::table, {}, std::move(grid), {}}); }
  void picture(Picture p) { blocks.push_back({Block::Kind::picture, {}, {}, std::move(p)}); }
};

/// Pictures stand in it as links to `picture_file`; where that is empty they are left out.
std::string document_markdown(const Document& d, const std::string& picture_file);
/// Compiles as it is: needs booktabs and xcolor.
std::string document_latex(const Document& d);
/// One file that needs nothing from elsewhere.
std::string document_html(const Document& d);

}  // namespace headroom::report
