#include "estimator/plan/profile.h"

#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

constexpr int schema_version = 1;

Json json_of(const Profile::CrossValidation& c) { return {{"calls", c.calls}, {"exact", c.exact}, {"near", c.near}}; }

Profile::CrossValidation cross_validation_of(const Json& j) {
  return {.calls = j.at("calls"), .exact = j.at("exact"), .near = j.at("near")};
}

Bytes bytes_at(const Json& j, const char* key) {
  const Bytes b(j.at(key).get<std::int64_t>());
  if (b < Bytes()) throw bad_input(std::string(key) + " is negative");
  return b;
}

/// "2.11" of "2.11.0+cu130".
std::string minor_version(const std::string& version) {
  const auto parts = split(version, '.');
  return parts.size() < 2 ? version : std::string(parts[0]) + "." + std::string(parts[1]);
}

std::shared_ptr<const Profile> parse(const std::string& text) {
  const Json j = Json::parse(text);
  if (j.at("schema_version") != schema_version) throw bad_input("a profile of another version of headroom");
  auto p = std::make_shared<Profile>();
  const Json& d = j.at("device");
  p->card = {.name = d.at("name"),
             .total_bytes = bytes_at(d, "total_bytes"),
             .compute_major = d.at("compute_major"),
             .compute_minor = d.at("compute_minor"),
             .sm_count = d.at("sm_count"),
             .threads_per_sm = d.at("threads_per_sm"),
             .generation = d.at("generation")};
  d.at("driver").get_to(p->driver);
  d.at("torch").get_to(p->torch);
  d.at("cuda").get_to(p->cuda);
  d.at("cudnn").get_to(p->cudnn);
  const Json& f = j.at("factors");
  p->context = bytes_at(f, "context_bytes");
  p->context_uncertainty = bytes_at(f, "context_uncertainty_bytes");
  p->cublas_workspace = bytes_at(f, "cublas_workspace_bytes");
  p->cublaslt_workspace = bytes_at(f, "cublaslt_workspace_bytes");
  const Json& c = j.at("convolutions");
  c.at("measured").get_to(p->convolutions);
  p->extends_built_in = c.value("extends_built_in", false);
  p->forward = cross_validation_of(c.at("forward"));
  p->input_gradient = cross_validation_of(c.at("input_gradient"));
  p->weight_gradient = cross_validation_of(c.at("weight_gradient"));
  for (const Json& r : j.at("runs"))
    p->runs.push_back({.name = r.at("name"),
                       .estimated_allocated = bytes_at(r, "estimated_allocated_bytes"),
                       .measured_allocated = bytes_at(r, "measured_allocated_bytes"),
                       .estimated_reserved = bytes_at(r, "estimated_reserved_bytes"),
                       .measured_reserved = bytes_at(r, "measured_reserved_bytes"),
                       .measured_device = bytes_at(r, "measured_device_bytes")});
  for (const Json& line : c.at("table")) p->convolution_table += line.get<std::string>() + "\n";
  p->index();
  return p;
}

}  // namespace

void Profile::index() {
  if (convolutions == 0) return;
  const auto* built_in = shadow::ConvWorkspaces::built_in(card.compute_major, static_cast<int>(card.sm_count));
  workspaces_ =
      std::make_shared<const shadow::ConvWorkspaces>(convolution_table, extends_built_in ? built_in : nullptr);
}

std::string profile_text(const Profile& p) {
  Json j{{"schema_version", schema_version}};
  j["device"] = {{"name", p.card.name},
                 {"total_bytes", p.card.total_bytes.count()},
                 {"compute_major", p.card.compute_major},
                 {"compute_minor", p.card.compute_minor},
                 {"sm_count", p.card.sm_count},
                 {"threads_per_sm", p.card.threads_per_sm},
                 {"generation", p.card.generation},
                 {"driver", p.driver},
                 {"torch", p.torch},
                 {"cuda", p.cuda},
                 {"cudnn", p.cudnn}};
  j["factors"] = {{"context_bytes", p.context.count()},
                  {"context_uncertainty_bytes", p.context_uncertainty.count()},
                  {"cublas_workspace_bytes", p.cublas_workspace.count()},
                  {"cublaslt_workspace_bytes", p.cublaslt_workspace.count()}};
  j["runs"] = Json::array();
  for (const Profile::Run& r : p.runs)
    j["runs"].push_back({{"name", r.name},
                         {"estimated_allocated_bytes", r.estimated_allocated.count()},
                         {"measured_allocated_bytes", r.measured_allocated.count()},
                         {"estimated_reserved_bytes", r.estimated_reserved.count()},
                         {"measured_reserved_bytes", r.measured_reserved.count()},
                         {"measured_device_bytes", r.measured_device.count()}});
  Json table = Json::array();
  for (const auto line : split(trim(p.convolution_table), '\n')) table.push_back(std::string(line));
  j["convolutions"] = {{"measured", p.convolutions},
                       {"extends_built_in", p.extends_built_in},
                       {"forward", json_of(p.forward)},
                       {"input_gradient", json_of(p.input_gradient)},
                       {"weight_gradient", json_of(p.weight_gradient)},
                       {"table", table}};
  return j.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::shared_ptr<const Profile> read_profile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw bad_input("cannot be read", path, "headroom calibrate writes profiles");
  try {
    return parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw bad_input("no profile: " + std::string(e.what()), path, "headroom calibrate writes profiles");
  } catch (const Error& e) {
    throw bad_input(e.what(), path, "headroom calibrate writes it anew");
  }
}

std::shared_ptr<const Profile> profile_of(const Scenario& scenario) {
  if (scenario.profile.empty()) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Profile>> known;
  const std::lock_guard lock(mutex);
  auto& profile = known[scenario.profile];
  if (!profile) profile = read_profile(scenario.profile);
  return profile;
}

Diagnostics profile_diagnostics(const Profile& profile, const Scenario& scenario) {
  if (minor_version(profile.torch) == minor_version(scenario.torch_version)) return {};
  return {{.code = "profile-version",
           .severity = Severity::warning,
           .node = {},
           .message = "the profile was made with torch " + profile.torch + ", the question is of " +
                      scenario.torch_version + ": libraries may take other workspaces"}};
}

}  // namespace headroom
