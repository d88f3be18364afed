// ReplayAnswer: what a recorded history needs under its own and under other settings, with everything a reporter
// prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/allocate/replay.h"
#include "estimator/base/bytes.h"
#include "estimator/base/diagnostic.h"

namespace headroom {

struct ReplayQuestion {
  std::vector<std::string> alloc_confs;  ///< PYTORCH_ALLOC_CONF texts to try; empty: the recording's own
  std::optional<Bytes> memory;           ///< would it have fitted? All of it is the allocator's
  std::optional<TorchVersion> torch;     ///< whose rules read the texts; absent: the recording's, else the default
  bool check = false;                    ///< compare with what was recorded
};

/// The history under one setting.
struct ReplayedSetting {
  std::string alloc_conf;
  bool as_recorded = false;  ///< the recording's settings on the recording's card
  std::optional<bool> fits;  ///< nothing was refused; absent unless a memory was asked about
  std::string peak_site;     ///< "train.py:42 forward" of the allocated peak; empty without frames
  std::string refused_site;  ///< of the first refused request
  ReplayResult result;
};

/// One process' allocator on one device.
struct ReplayAnswer {
  std::string file;
  int device = 0;
  std::string torch_version;              ///< empty: not recorded
  std::string alloc_conf;                 ///< of the recording
  std::optional<double> memory_fraction;  ///< of the recording
  std::optional<Bytes> device_total;      ///< of the recording
  std::int64_t events = 0;
  std::int64_t allocations = 0;
  Bytes initial;                          ///< reserved when the history begins; 0: it began with the process
  std::optional<Bytes> memory;            ///< asked about
  std::vector<ReplayedSetting> settings;  ///< as recorded, then as asked
  std::vector<LeakSite> leaks;
  std::optional<ReplayCheck> check;
  bool check_passed = true;  ///< all equal; for cudaMallocAsync reserved within its bound
  Diagnostics diagnostics;

  /// What the question is about: the one setting asked for; where there are none, or several to compare, the recording.
  const ReplayedSetting& asked() const { return settings.size() == 2 ? settings[1] : settings[0]; }
  /// Whether any setting asked for fits; absent unless a memory was asked about.
  std::optional<bool> fits() const;
};

/// One answer for each history in the file. Throws Error.
std::vector<ReplayAnswer> answer_replay(const std::string& path, const ReplayQuestion& question);
/// The same of a history in memory.
ReplayAnswer answer_replay(const History& history, const ReplayQuestion& question);

}  // namespace headroom
