// TS_CHECK: for bugs, kept on in release; prints the place and the message, then aborts. Never for what a user, a peer or
// a disk can cause: those are Result errors.
#pragma once

#include <fmt/core.h>

#include <string>

namespace tessera::base {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
}

#define TS_CHECK(condition, ...)                                    \
  do {                                                              \
    if (!(condition)) [[unlikely]]                                  \
      ::tessera::base::check_failed(__FILE__, __LINE__, #condition, \
                                    ::fmt::format("" __VA_ARGS__)); \
  } while (false)
