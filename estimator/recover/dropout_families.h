// Which libraries' modules have dropouts that do nothing.
#pragma once

#include <string_view>

namespace headroom::recovery {

/// `classes`: a node's class hierarchy. Its modules drop out with probability zero by default, so that a `clone` where
/// the export lost a dropout is the identity.
bool has_no_dropout(std::string_view classes);
/// What a node with this stack trace makes is dropped out with `activation_dropout`, 0 by default in layers of BART's
/// kind.
bool drops_no_activations(std::string_view classes, std::string_view trace);
/// Layers that drop out, but not what attention weighs with.
bool drops_no_weights(std::string_view classes);
/// The same of a module path, where the file says no classes: models with a head name the model under it after its
/// family ("rembert.encoder"), some have modules that no other family has.
bool path_has_no_dropout(std::string_view path);

}  // namespace headroom::recovery
