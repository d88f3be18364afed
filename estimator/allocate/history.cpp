#include "estimator/allocate/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "estimator/allocate/history_readers.h"
#include "estimator/allocate/json_reader.h"
#include "estimator/allocate/pickle_reader.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

constexpr std::string_view what_it_may_be =
    "expected a snapshot of torch.cuda.memory._dump_snapshot (pickle), or a JSON history with `events`";

}  // namespace

std::string History::call_site(std::int32_t context) const {
  if (context < 0 || static_cast<std::size_t>(context) >= stacks.size()) return {};
  const auto text = [](const Frame& f) { return fmt::format("{}:{} {}", f.filename, f.line, f.name); };
  const Frame* best = nullptr;
  for (const std::uint32_t index : stacks[static_cast<std::size_t>(context)]) {
    const Frame& frame = frames[index];
    if (frame.filename.ends_with(".onnx")) return frame.filename + " " + frame.name;
    const bool python = frame.filename.ends_with(".py");
    const bool torch = frame.filename.find("/torch/") != std::string::npos;
    if (python && !torch) return text(frame);
    if (python && best == nullptr) best = &frame;
  }
  return best == nullptr ? std::string() : text(*best);
}

void number_streams(History& history, std::vector<std::int64_t> handles_of_entries,
                    std::vector<std::int64_t> handles_of_segments) {
  std::vector<std::int64_t> handles = handles_of_entries;
  handles.insert(handles.end(), handles_of_segments.begin(), handles_of_segments.end());
  std::sort(handles.begin(), handles.end());
  handles.erase(std::unique(handles.begin(), handles.end()), handles.end());
  const auto number = [&](std::int64_t handle) {
    return static_cast<Stream>(std::lower_bound(handles.begin(), handles.end(), handle) - handles.begin());
  };
  for (std::size_t i = 0; i < handles_of_entries.size(); ++i) history.entries[i].stream = number(handles_of_entries[i]);
  for (std::size_t i = 0; i < handles_of_segments.size(); ++i) {
    history.segments[i].stream = number(handles_of_segments[i]);
  }
}

std::vector<History> parse_histories(std::string_view bytes, const std::string& file) {
  const std::size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    throw bad_input("the file is empty", printable(file), std::string(what_it_may_be));
  const bool json = bytes[first] == '{' || bytes[first] == '[';
  const PlainData data = json ? read_json(bytes, file) : read_pickle(bytes, file);
  if (data.get(data.root, "device_traces").is_list()) return histories_of_snapshot(data, file);
  if (data.root.is_dict()) return {history_of_events(data, data.root, file)};
  std::vector<History> histories;
  for (const PlainValue& run : data.items(data.root)) {
    if (!run.is_dict()) break;
    histories.push_back(history_of_events(data, run, file));
  }
  if (histories.empty())
    throw bad_input("no allocator history in this file", printable(file), std::string(what_it_may_be));
  return histories;
}

std::vector<History> read_histories(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!file || !(bytes << file.rdbuf())) {
    throw bad_input("the file cannot be read", printable(path), std::string(what_it_may_be));
  }
  const std::string text = std::move(bytes).str();
  return parse_histories(text, path);
}

}  // namespace headroom
