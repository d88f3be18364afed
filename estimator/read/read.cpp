// read_model: file -> bytes -> drafts -> Model.
#include <onnx-ml.pb.h>

#include <cstring>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/read/arena.h"
#include "estimator/read/foreign_files.h"
#include "estimator/read/graph.h"
#include "estimator/read/mapped_file.h"
#include "estimator/read/parse.h"
#include "estimator/read/resolve.h"
#include "estimator/read/storage.h"
#include "estimator/read/wire.h"

namespace headroom {
namespace {

/// From here on the pages behind the parser are forgotten, so nothing may point into the file.
constexpr std::size_t large_file = 64 << 20;
constexpr std::int64_t oldest_ir = 3;
constexpr std::int64_t newest_ir = onnx::IR_VERSION;
constexpr std::int64_t oldest_opset = 7;
constexpr std::int64_t newest_opset = 28;

Error unreadable(std::string_view bytes, const std::string& file, const WireError& e) {
  if (const ForeignFile other = recognise(bytes); !other.what.empty())
    return bad_input("no ONNX model: this is " + other.what, file, other.hint);
  const auto offset = static_cast<std::size_t>(e.at - bytes.data());
  return bad_input(std::string("no ONNX model, or a damaged one: ") + e.what, file + ", byte " + std::to_string(offset),
                   e.hint != nullptr ? e.hint : "the file may be cut: copy or export it again");
}

Error shrunk(const std::string& file) {
  return bad_input("the file became shorter while it was read", file, "try again when it is written");
}

void check_versions(const ModelDraft& draft, const std::string& file, Diagnostics& diagnostics) {
  std::int64_t opset = 0;
  for (const OpsetImport& import : draft.opsets)
    if (import.domain.empty()) opset = import.version;
  const std::string convert = "convert it: onnx.version_converter.convert_version(model, 17)";
  if (draft.ir_version < oldest_ir)
    throw bad_input("IR version " + std::to_string(draft.ir_version) + " is too old (3 is the oldest that is read)",
                    file, convert);
  if (draft.opsets.empty() || (opset == 0 && draft.uses_standard_operators))
    throw bad_input("the file imports no opset of the standard operators", file,
                    "the file may be cut: copy or export it again");
  if (opset < oldest_opset && draft.uses_standard_operators)
    throw bad_input("opset " + std::to_string(opset) + " is too old (7 is the oldest that is read)", file, convert);
  if (draft.ir_version > newest_ir)
    diagnostics.push_back({"ir-version-newer",
                           Severity::warning,
                           {},
                           "IR version " + std::to_string(draft.ir_version) + " is newer than " +
                               std::to_string(newest_ir) +
                               ", the newest this version knows; read as far as it is known"});
  if (opset > newest_opset)
    diagnostics.push_back({"opset-newer",
                           Severity::warning,
                           {},
                           "opset " + std::to_string(opset) + " is newer than " + std::to_string(newest_opset) +
                               ", the newest this version knows; operators are read by the rules known"});
}

}  // namespace

class ModelBuilder {
 public:
  static Model from_file(const std::filesystem::path& path, const ReadLimits& limits) {
    auto storage = std::make_unique<Model::Storage>();
    storage->file = std::make_unique<MappedFile>(path);
    storage->bytes = storage->file->bytes();
    return build(std::move(storage), path, limits);
  }

  static ExternalData& external_data_of(const Model& model) { return model.storage_->external; }

  static Model from_memory(std::string_view bytes, const std::filesystem::path& path, const ReadLimits& limits) {
    auto storage = std::make_unique<Model::Storage>();
    storage->bytes = bytes;
    return build(std::move(storage), path, limits);
  }

 private:
  static Model build(std::unique_ptr<Model::Storage> storage, const std::filesystem::path& path,
                     const ReadLimits& limits) {
    Model model;
    model.path = path;
    model.storage_ = std::move(storage);
    const Model::Storage& s = *model.storage_;
    const std::string file = path.string();
    const auto shrank = [&s] { return s.file != nullptr && s.file->shrank(); };
    try {
      fill(model, file, limits);
    } catch (const WireError& e) {
      if (shrank()) throw shrunk(file);
      throw unreadable(s.bytes, file, e);
    } catch (const CountedMemory::MemoryLimit&) {
      throw bad_input("its graph takes more than " + human(Bytes(Model::Storage::memory_limit)) + " to hold", file,
                      "the file is damaged, or its functions blow up when they are inlined");
    } catch (const Error&) {
      if (shrank()) throw shrunk(file);
      throw;
    }
    if (shrank()) throw shrunk(file);
    return model;
  }

  static void fill(Model& model, const std::string& file, const ReadLimits& limits) {
    Model::Storage& s = *model.storage_;
    const bool large = s.bytes.size() > large_file;
    Arena scratch(std::size_t{1} << 16, &s.heap);
    Names names(s.heap, large ? &s.arena : nullptr);
    Progress progress(s.bytes, large ? s.file.get() : nullptr);
    const ModelDraft draft =
        parse_model(s.bytes, {file, s.heap, s.arena, scratch, large, names, progress, model.diagnostics, limits});
    check_versions(draft, file, model.diagnostics);
    Resolved resolved = resolve(draft, names, file, limits, s.heap, s.arena, model.diagnostics);
    model.graph_ = resolved.graph;
    model.names_ = std::move(resolved.value_names);
    s.hash = progress.finish();
    model.file_bytes = static_cast<std::int64_t>(s.bytes.size());
    model.ir_version = draft.ir_version;
    model.producer = draft.producer;
    model.producer_version = draft.producer_version;
    for (const OpsetImport& import : draft.opsets) model.opsets.emplace_back(import.domain, import.version);
  }
};

ExternalData& external_data_of(const Model& model) { return ModelBuilder::external_data_of(model); }

Model::Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

std::uint64_t Model::hash() const { return storage_->hash.get(); }

std::int64_t Model::opset(std::string_view domain) const {
  for (const auto& [name, version] : opsets)
    if (name == domain) return version;
  return 0;
}

Model read_model(const std::filesystem::path& path, const ReadLimits& limits) {
  return ModelBuilder::from_file(path, limits);
}

Model read_model(std::span<const std::byte> bytes, const std::filesystem::path& folder, const ReadLimits& limits) {
  return ModelBuilder::from_memory({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, folder / "model.onnx",
                                   limits);
}

}  // namespace headroom
