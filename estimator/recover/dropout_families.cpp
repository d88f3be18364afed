#include "estimator/recover/dropout_families.h"

#include <algorithm>

namespace headroom::recovery {

namespace {

/// Families of transformers whose configurations have no dropout between layers by default (transformers 5.17).
// clang-format off
constexpr std::string_view families[] = {
    "albert", "audio_spectrogram_transformer", "bark", "beit", "blip", "bloom", "blt", "chameleon", "codegen",
    "cpmant", "cvt", "d_fine", "dbrx", "deit", "dinat", "dinov2", "dinov2_with_registers", "doge", "dpt", "eomt", "falcon",
    "flava", "focalnet", "glpn", "gpt_neo", "gpt_neox", "gpt_neox_japanese", "gptj", "groupvit", "idefics", "ijepa",
    "internvl", "janus", "llama4", "lw_detr", "mask2former", "mgp_str", "mllama", "mobilebert", "modernbert",
    "modernbert_decoder", "mpt", "nemotron_h", "nomic_bert", "omdet_turbo", "patchtst", "persimmon", "phi", "phi3",
    "phi4_multimodal", "pixio", "pvt", "pvt_v2", "qwen2_audio", "rembert", "rt_detr", "rt_detr_v2", "segformer",
    "seggpt", "stablelm", "starcoder2", "swiftformer", "swin", "swin2sr", "swinv2", "t5gemma", "timesformer",
    "videomae", "vilt", "vit", "vit_mae", "vit_msn", "vitdet", "vitpose_backbone", "vivit", "voxtral", "whisper",
    "x_clip", "yolos"};
// clang-format on
static_assert(std::is_sorted(std::begin(families), std::end(families)));

bool is_family(std::string_view name) { return std::binary_search(std::begin(families), std::end(families), name); }

}  // namespace

bool has_no_dropout(std::string_view classes) {
  constexpr std::string_view package = "transformers.models.";
  if (const std::size_t at = classes.find(package); at != std::string_view::npos) {
    const std::string_view rest = classes.substr(at + package.size());
    if (is_family(rest.substr(0, rest.find('.')))) return true;
  }
  constexpr std::string_view others[] = {"torchvision.models.vision_transformer",
                                         "torchvision.models.swin",
                                         "torchvision.models.maxvit",
                                         "torchvision.models.video.mvit",
                                         "diffusers.",
                                         "timm."};
  return std::any_of(std::begin(others), std::end(others),
                     [&](std::string_view name) { return classes.find(name) != std::string_view::npos; });
}

bool drops_no_activations(std::string_view classes, std::string_view trace) {
  return classes.find("transformers.models.") != std::string_view::npos &&
         trace.find("self.activation_fn(self.fc1(") != std::string_view::npos &&
         classes.find("informer") == std::string_view::npos && classes.find("autoformer") == std::string_view::npos &&
         classes.find("time_series") == std::string_view::npos;
}

bool drops_no_weights(std::string_view classes) {
  constexpr std::string_view package = "transformers.models.";
  constexpr std::string_view kinds[] = {
      "bart",    "bigbird_pegasus", "blenderbot", "blenderbot_small", "led",  "marian", "mbart", "mvp", "opt",
      "pegasus", "pegasus_x",       "plbart",     "speech_to_text",   "trocr"};
  const std::size_t at = classes.find(package);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = classes.substr(at + package.size());
  return std::ranges::find(kinds, rest.substr(0, rest.find('.'))) != std::end(kinds);
}

bool path_has_no_dropout(std::string_view path) {
  // ALBERT, RemBERT, MobileBERT, Whisper
  constexpr std::string_view modules[] = {"albert_layer_groups", "embedding_hidden_mapping_in", "bottleneck.input",
                                          "encoder.conv1"};
  return is_family(path.substr(0, path.find('.'))) ||
         std::any_of(std::begin(modules), std::end(modules),
                     [&](std::string_view module) { return path.find(module) != std::string_view::npos; });
}

}  // namespace headroom::recovery
