#include <array>

#include "estimator/cli/options.h"

namespace headroom::cli {
namespace {

std::string padded(std::string text, std::size_t width) {
  text += std::string(text.size() < width ? width - text.size() : 1, ' ');
  return text;
}

/// "  -o, --output FILE"; long choices go below the help line.
std::string usage_of(const Flag& f) {
  const auto comma = f.name.find(',');
  std::string out =
      comma == std::string_view::npos ? "      --" : "  -" + std::string(f.name.substr(comma + 1)) + ", --";
  out += f.name.substr(0, comma);
  if (!f.argument.empty()) out += f.argument.size() > 24 ? " WHAT" : " " + std::string(f.argument);
  return out;
}

}  // namespace

std::span<const std::pair<int, std::string_view>> exit_codes() {
  static constexpr auto codes =
      std::to_array<std::pair<int, std::string_view>>({{0, "answered"},
                                                       {1, "answered no (does not fit, over budget)"},
                                                       {2, "usage"},
                                                       {3, "bad input"},
                                                       {4, "not modelled (--strict)"},
                                                       {5, "environment"},
                                                       {70, "a bug of ours"}});
  return codes;
}

std::string general_help() {
  std::string out =
      "headroom: how much GPU memory a model needs, from its ONNX file, without a GPU\n\n"
      "usage: headroom COMMAND [OPTIONS] [FILES]\n\ncommands:\n";
  for (const Command& c : commands()) out += "  " + padded(std::string(c.name), 14) + std::string(c.summary) + "\n";
  out +=
      "\nexamples:\n"
      "  headroom estimate gpt2.onnx --batch 8 --seq 512 --precision amp-bf16\n"
      "  headroom estimate resnet50.onnx --batch 64 --gpu rtx4090\n\n"
      "`headroom COMMAND --help` explains one command, `headroom man` all.\nexit:";
  for (const auto& [code, meaning] : exit_codes())
    out += (code == 0 ? " " : ", ") + std::to_string(code) + " " + std::string(meaning);
  out += "\n";
  return out;
}

std::string help_of(const Command& command) {
  std::string out = "headroom " + std::string(command.name) + ": " + std::string(command.summary) +
                    "\n\nusage: headroom " + std::string(command.name) + " " + std::string(command.arguments) +
                    (command.arguments.empty() ? "" : " ") + "[OPTIONS]\n";
  std::string_view group;
  for (const Flag& f : flags()) {
    if ((f.on & command.bit) == 0) continue;
    if (f.group != group) {
      group = f.group;
      out += "\n" + std::string(group) + ":\n";
    }
    out += padded(usage_of(f), 34) + std::string(f.help) + "\n";
    if (f.argument.size() > 24) out += std::string(36, ' ') + std::string(f.argument) + "\n";
  }
  if (!command.examples.empty()) out += "\nexamples:\n" + std::string(command.examples);
  return out;
}

}  // namespace headroom::cli
