#include <algorithm>
#include <boost/program_options.hpp>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/options.h"

namespace headroom::cli {
namespace {

namespace po = boost::program_options;

std::string_view long_name(const Flag& f) { return f.name.substr(0, f.name.find(',')); }

po::options_description description_of(const Command& command) {
  po::options_description out;
  for (const Flag& f : flags()) {
    if ((f.on & command.bit) == 0) continue;
    const std::string name(f.name), help(f.help);
    if (f.argument.empty())
      out.add_options()(name.c_str(), help.c_str());
    else
      out.add_options()(name.c_str(), po::value<std::vector<std::string>>()->composing(), help.c_str());
  }
  out.add_options()("file", po::value<std::vector<std::string>>());
  return out;
}

[[noreturn]] void unknown_flag(const Command& command, std::string name) {
  while (name.starts_with('-')) name.erase(0, 1);
  name.erase(std::min(name.size(), name.find('=')));
  std::vector<std::string> known;
  for (const Flag& f : flags())
    if (f.on & command.bit) known.emplace_back(long_name(f));
  const Flag* known_flag = find_flag(name);
  if (known_flag && (known_flag->on & command.bit))
    throw usage_error("options have two dashes", "-" + printable(name), "did you mean --" + name + "?");
  if (known_flag)
    throw usage_error("--" + printable(name) + " does not belong to `headroom " + std::string(command.name) + "`", "",
                      "`headroom " + std::string(command.name) + " --help` lists what does");
  const auto near = nearest(name, known);
  if (name == "amp" || name == "fp16" || name == "bf16" || name == "half")
    throw usage_error("there is no option --" + name, "",
                      "--precision amp-bf16, amp-fp16: autocast; bf16, fp16: the module cast");
  throw usage_error("there is no option --" + printable(name), "",
                    near.empty() ? "`headroom " + std::string(command.name) + " --help` lists all"
                                 : "did you mean --" + std::string(near) + "?");
}

}  // namespace

const Flag* find_flag(std::string_view name, unsigned on) {
  for (const Flag& f : flags())
    if ((f.on & on) != 0 && long_name(f) == name) return &f;
  return nullptr;
}

const Command* find_command(std::string_view name) {
  for (const Command& c : commands())
    if (c.name == name) return &c;
  return nullptr;
}

bool sets_scenario(std::string_view name) {
  const Flag* f = find_flag(name);
  constexpr unsigned needed = on_scenario & ~on_checkpoint;  // that command chooses the scenario's checkpoints
  return f && (f->on & needed) == needed && f->group != "Output";
}

Options parse(const std::vector<std::string>& arguments) {
  Options o;
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    o.help = true;
    return o;
  }
  if (arguments[0] == "--version") {
    o.version = true;
    return o;
  }
  const Command* command = find_command(arguments[0]);
  if (!command) {
    std::vector<std::string_view> names;
    for (const Command& c : commands()) names.push_back(c.name);
    const auto near = nearest(arguments[0], names);
    const bool file = arguments[0].ends_with(".onnx");
    throw usage_error("there is no command '" + printable(arguments[0]) + "'", "",
                      arguments[0].starts_with('-') ? "the command stands first: headroom estimate model.onnx --batch 8"
                      : file         ? "did you mean `headroom estimate " + printable(arguments[0]) + "`?"
                      : near.empty() ? "`headroom --help` lists the commands"
                                     : "did you mean `headroom " + std::string(near) + "`?");
  }
  if (command->bit == on_diff) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (mark != arguments.end()) {
      std::vector<std::string> all(arguments.begin(), mark);
      o = parse(all);
      all.insert(all.end(), mark + 1, arguments.end());
      o.after = std::make_shared<const Options>(parse(all));
      return o;
    }
  }
  o.command = command->name;
  const po::options_description description = description_of(*command);
  po::positional_options_description positional;
  positional.add("file", -1);
  po::parsed_options parsed(&description);
  try {
    using Style = po::command_line_style::style_t;
    const int style = (Style::unix_style & ~Style::allow_guessing) | Style::allow_long;
    parsed = po::command_line_parser(std::vector<std::string>(arguments.begin() + 1, arguments.end()))
                 .options(description)
                 .positional(positional)
                 .style(style)
                 .run();
  } catch (const po::unknown_option& e) {
    unknown_flag(*command, e.get_option_name());
  } catch (const po::error_with_option_name& e) {
    std::string name = e.get_option_name();
    while (name.starts_with('-')) name.erase(0, 1);
    const Flag* f = find_flag(name, command->bit);
    if (f && f->argument.empty()) throw usage_error("--" + name + " takes no value");
    throw usage_error("--" + printable(name) + " wants a value" + (f ? ": " + std::string(f->argument) : ""));
  } catch (const po::error& e) {
    throw usage_error(e.what());
  }
  for (const auto& option : parsed.options) {
    if (option.string_key == "file") {
      o.files.insert(o.files.end(), option.value.begin(), option.value.end());
      continue;
    }
    const Flag* f = find_flag(option.string_key, command->bit);
    o.given.emplace_back(option.string_key);
    f->set(o, option.value.empty() ? std::string_view() : std::string_view(option.value[0]));
  }
  return o;
}

}  // namespace headroom::cli
