#include "estimator/report/document.h"
#include "estimator/report/escape.h"

namespace headroom::report {

std::string document_latex(const Document& d) {
  std::string out =
      "\\documentclass[a4paper]{article}\n\\usepackage[T1]{fontenc}\n\\usepackage[margin=22mm]{geometry}\n"
      "\\usepackage{booktabs}\n\\usepackage{xcolor}\n\\setlength{\\parindent}{0pt}\n\\setlength{\\parskip}{4pt}\n"
      "\\begin{document}\n";
  out += "{\\Large\\bfseries " + latex_text(d.title) + "\\par}\n" + latex_text(d.subtitle) + "\n";
  for (const Block& b : d.blocks) {
    out += "\n";
    switch (b.kind) {
      case Block::Kind::heading:
        out += "\\section*{" + latex_text(b.lines[0]) + "}\n";
        break;
      case Block::Kind::paragraph:
        out += latex_text(b.lines[0]) + "\n";
        break;
      case Block::Kind::list:
        out += "\\begin{itemize}\n";
        for (const auto& item : b.lines) out += "\\item{} " + latex_text(item) + "\n";
        out += "\\end{itemize}\n";
        break;
      case Block::Kind::code:
        out += "{\\footnotesize\\ttfamily\\raggedright\n";
        for (const auto& line : b.lines) {
          // Blanks in front count in Python.
          const std::size_t blanks = line.find_first_not_of(' ');
          for (std::size_t i = 0; i < blanks && i < line.size(); ++i) out += "\\ ";
          out += latex_text(line) + "\\par\n";
        }
        out += "}\n";
        break;
      case Block::Kind::table:
        out += "{\\centering\\footnotesize\n" + grid_latex(b.grid) + "\\par}\n";
        break;
      case Block::Kind::picture:
        out += latex_picture(b.picture);
        break;
    }
  }
  return out + "\\end{document}\n";
}

}  // namespace headroom::report
