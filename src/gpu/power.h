// Power limits of a model's boards, as shipped: a live device's own limits win over these.
//
// Units:   watts.
// Errors:  kNotFound for a board that the model does not have.
// Source:  data/*.yaml.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gpu/catalog.h"

namespace tessera::gpu {

// Of the board called `board` ("SXM5", a product label or a PCI id); of the usual one where it is
// empty.
base::Result<Power> power_limits(const Model& model, std::string_view board = {});

}  // namespace tessera::gpu
