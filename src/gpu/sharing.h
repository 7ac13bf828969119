// Shares of a GPU: exact conversions between the texts that users write, thousandths of a GPU and
// MiB.
//
// Units:   Milli: 1000 is a whole GPU; Mib against the memory that the driver leaves free
//          (Model::usable_memory).
// Errors:  kInvalid for a text that is no such number or too fine; kNever for more memory than the
//          model has.
// Threads: plain functions.
// Source:  KAI-Scheduler's pod annotations gpu-fraction ("0.5", above 0 and below 1) and gpu-memory
//          (MiB).
#pragma once

#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"
#include "gpu/catalog.h"

namespace tessera::gpu {

inline constexpr base::Milli kWholeGpu{1000};

// "0.25" -> 250. Refuses 0, 1 and above, signs, exponents and what is finer than a thousandth.
base::Result<base::Milli> parse_gpu_fraction(std::string_view text);
// The shortest decimal: 250 -> "0.25", 1000 -> "1".
std::string fraction_text(base::Milli share);
// "4096" -> 4096 MiB. Refuses 0 and what is no whole number.
base::Result<base::Mib> parse_gpu_memory(std::string_view text);

// The least share whose memory is at least this much: rounds up, so that a set of shares never
// overbooks the memory.
base::Result<base::Milli> share_of_memory(base::Mib memory, const Model& model);
// The memory that goes with a share: rounds down.
base::Mib memory_of_share(base::Milli share, const Model& model);

}  // namespace tessera::gpu
