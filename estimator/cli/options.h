// Options: one invocation of the program, parsed. One flag table drives parsing, help, completions and the man page.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/program/scenario.h"

namespace headroom::cli {

struct Options {
  std::string command;
  std::vector<std::string> files;        ///< positional arguments after the command
  std::vector<std::string> given;        ///< long names of the flags, in their order
  std::shared_ptr<const Options> after;  ///< diff: all arguments, those behind `--` too; null without `--`
  Scenario scenario;
  std::string gpu;
  std::string memory;
  std::string budget;
  std::string tolerance;  ///< diff --tolerance
  std::string format = "table";
  std::string output;                    ///< -o
  std::string stage;                     ///< inspect --stage
  std::string against;                   ///< inspect --against
  std::vector<std::string> alloc_confs;  ///< replay: every --alloc-conf; estimate takes the last
  std::string snapshot;                  ///< estimate --snapshot
  std::vector<std::string> gpus;         ///< fit, sweep: every --gpu; others take the last
  std::vector<std::string> over;         ///< sweep: every --over, "batch=1,2,4:64"
  std::vector<std::string> metrics;      ///< sweep --metric
  std::string max;                       ///< fit --max
  std::int64_t global_batch = 0;         ///< fit --global-batch; 0: not given
  std::string prices;                    ///< fit --prices
  std::size_t threads = 0;               ///< 0: one for each core
  std::string torch;                     ///< --torch as given; empty: not given
  std::string runner;                    ///< verify, calibrate --runner
  std::string suite;                     ///< verify --suite
  std::int64_t time_limit = 600;         ///< verify, calibrate --time-limit, seconds
  std::int64_t seconds = 120;            ///< calibrate --budget
  bool from_nothing = false;             ///< calibrate --from-nothing
  std::string events;                    ///< verify --events
  std::optional<double> max_recompute;   ///< checkpoint --max-recompute, as a share
  bool by_cuts = false;                  ///< checkpoint --by cuts
  std::string plan;                      ///< checkpoint --plan
  std::string svg;                       ///< checkpoint --svg
  bool max_batch = false;                ///< verify --max-batch
  bool check = false;                    ///< replay --check
  bool strict = false;
  bool help = false;
  bool version = false;
};

/// Commands a flag belongs to, as bits.
enum CommandBit : unsigned {
  on_estimate = 1U << 0,
  on_inspect = 1U << 1,
  on_ops = 1U << 2,
  on_gpus = 1U << 3,
  on_completions = 1U << 4,
  on_replay = 1U << 5,
  on_check = 1U << 6,
  on_diff = 1U << 7,
  on_advise = 1U << 8,
  on_verify = 1U << 9,
  on_man = 1U << 10,
  on_fit = 1U << 11,
  on_sweep = 1U << 12,
  on_report = 1U << 13,
  on_calibrate = 1U << 14,
  on_checkpoint = 1U << 15,
};
inline constexpr unsigned on_scenario =
    on_estimate | on_inspect | on_diff | on_advise | on_fit | on_sweep | on_report | on_checkpoint;
inline constexpr unsigned on_question = on_scenario | on_verify;  ///< of a run, whatever card it is on
inline constexpr unsigned on_all = ~0U;

struct Command {
  std::string_view name;
  unsigned bit;
  std::string_view arguments;  ///< "MODEL.onnx"
  std::string_view summary;
  std::string_view examples;  ///< lines of the help text
  int (*run)(const Options&);
};
std::span<const Command> commands();
const Command* find_command(std::string_view name);

struct Flag {
  std::string_view name;      ///< without dashes; "output,o" gives a short form too
  std::string_view argument;  ///< "N", "GLOB", "fp32|bf16" (choices), empty: a switch
  std::string_view group;     ///< heading in the help
  std::string_view help;
  unsigned on;
  void (*set)(Options&, std::string_view value);
  bool repeatable = false;  ///< every one counts; of others the last
};
std::span<const Flag> flags();
/// Whether the flag of that long name is a knob of the scenario.
bool sets_scenario(std::string_view name);
/// The flag of that long name that belongs to a command of `on`; null when there is none.
const Flag* find_flag(std::string_view name, unsigned on = on_all);

/// Parses the arguments after the program's name. Throws Error(usage) with a suggestion for what is misspelt.
Options parse(const std::vector<std::string>& arguments);

/// Exit statuses and what each means (design, section 5).
std::span<const std::pair<int, std::string_view>> exit_codes();

std::string general_help();
std::string help_of(const Command& command);

}  // namespace headroom::cli
