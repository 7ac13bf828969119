// A text is a SchedulerConfig or one error of one line that names its origin; what is accepted is accepted by those who use it.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scheduler/config_options.h"

using namespace tessera;
using namespace tessera::scheduler;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_config({reinterpret_cast<const char*>(data), size}, "origin");
  if (!config) {
    const std::string& message = config.error().message;
    TS_CHECK(message.starts_with("origin: "));
    TS_CHECK(message.find('\n') == std::string::npos);
    return 0;
  }
  TS_CHECK(!config->scheduler_names.empty());
  TS_CHECK(can_change(*config, *config).has_value());
  TS_CHECK(kube::validate(leader_options(*config, "me")).has_value());
  const queueing::EngineOptions engine = engine_options(*config);
  TS_CHECK(!engine.half_life || engine.half_life->ns > 0);
  TS_CHECK(!engine.patience || engine.patience->ns > 0);
  return 0;
}
