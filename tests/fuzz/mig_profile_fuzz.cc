// Profile names and layouts from anyone's config file: never a crash, names read back as written,
// layouts always valid. Input: the first byte picks a model that can be cut; then lines "<profile>
// <count>".
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "gpu/mig.h"
#include "gpu/mig_name.h"

namespace {

using namespace tessera;

void check_name(std::string_view text) {
  if (const auto name = gpu::parse_profile_name(text)) {
    const std::string written = gpu::to_text(*name);
    const auto again = gpu::parse_profile_name(written);
    TS_CHECK(again && *again == *name, "{} does not read back", written);
    const auto back = gpu::profile_of_resource(gpu::resource_name(*name));
    TS_CHECK(back && *back == *name, "the resource of {} does not read back", written);
  }
  if (const auto name = gpu::profile_of_resource(text)) {
    TS_CHECK(gpu::parse_profile_name(gpu::to_text(*name)), "{} is no name", gpu::to_text(*name));
  }
}

std::vector<gpu::ProfileCount> read_lines(std::string_view text) {
  std::vector<gpu::ProfileCount> list;
  while (!text.empty() && list.size() < 64) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t blank = line.find(' ');
    check_name(line.substr(0, blank));
    const std::string count(blank == std::string_view::npos ? "1" : line.substr(blank + 1, 9));
    list.push_back({std::string(line.substr(0, blank)), std::atoi(count.c_str())});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return list;
}

void check_layout(const gpu::MigLayout& layout) {
  uint32_t taken = 0;
  gpu::MigLayout again(layout.model());
  for (const gpu::MigPlacement& place : layout.placements()) {
    const uint32_t mask = ((1U << place.size) - 1) << place.start;
    TS_CHECK((taken & mask) == 0, "instances overlap");
    taken |= mask;
    TS_CHECK(again.add(place.profile, place.start), "a valid layout is refused piece by piece");
  }
  TS_CHECK(again == layout && taken == layout.memory_mask(), "layouts differ");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<const gpu::Model*> cut;
  for (const gpu::Model& model : gpu::models()) {
    if (model.mig != nullptr) cut.push_back(&model);
  }
  const gpu::Model& model = *cut[data[0] % cut.size()];
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_name(text);
  const std::vector<gpu::ProfileCount> wanted = read_lines(text);
  const auto layout = gpu::fit(model, wanted);
  if (!layout) return 0;
  check_layout(*layout);
  // What stands already must not move when more is asked.
  if (const auto more = gpu::fit(*layout, wanted)) {
    TS_CHECK((more->slots() & layout->slots()) == layout->slots(), "an instance moved");
    check_layout(*more);
  }
  return 0;
}
