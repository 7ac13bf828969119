// The names of the time zones of the world.
//
// Shape:   compiled in, so that what is refused does not depend on the machine.
// Threads: any.
// Source:  the time zone database as Go 1.26 carries it, https://www.iana.org/time-zones.
#pragma once

#include <string_view>

namespace tessera::apiserver {

// "Europe/Berlin"; case matters.
bool is_time_zone(std::string_view name);

}  // namespace tessera::apiserver
