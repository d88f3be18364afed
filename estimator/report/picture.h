// Picture: coloured boxes, lines and labels on a page, as SVG or in LaTeX.
#pragma once

#include <string>
#include <vector>

namespace headroom::report {

struct Picture {
  enum class Align { left, middle, right };
  /// Lengths are in points; x runs to the right, y down.
  struct Box {
    double x = 0, y = 0, width = 0, height = 0;  ///< (x, y): its upper left corner
    const char* colour = "";                     ///< "2f6db5"
  };
  struct Line {
    double x = 0, y = 0, length = 0;  ///< to the right, or down
    bool down = false;
    bool dashed = false;  ///< of lines to the right
  };
  struct Label {
    double x = 0, y = 0;  ///< on the base line
    std::string text;
    Align align = Align::left;
  };
  double width = 0, height = 0;
  std::string title;  ///< what it shows, in words
  std::vector<Box> boxes;
  std::vector<Line> lines;
  std::vector<Label> labels;
};

/// An <svg> element that needs nothing from elsewhere; ink has the colour of the text around it.
std::string svg(const Picture& p);
/// A picture environment as wide as the line; needs xcolor.
std::string latex_picture(const Picture& p);

}  // namespace headroom::report
