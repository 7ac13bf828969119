// Where the API gets what a container has written: whoever runs the pods implements ContainerLogs.
//
// Shape:   read() is told of one request and answers its reader: fail() alone, or text in pieces and end(). What a
//          kubelet decides (whether that container has a log) is the source's to decide; that pod and container exist
//          and that the options make sense has been seen to.
// Errors:  worded as the kubelet words them: kBadRequest for a container that has no log yet.
// Threads: any; a reader is called by one thread at a time.
// Source:  k8s.io/api core/v1 (PodLogOptions).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace tessera::apiserver {

struct LogQuery {
  std::string ns;
  std::string pod;
  std::string uid;
  std::string node;
  std::string container;
  bool follow = false;
  bool previous = false;  // of the run before this one
  bool timestamps = false;
  std::optional<int64_t> tail_lines{};
  std::optional<int64_t> limit_bytes{};
  std::optional<base::Time> since{};
};

class LogReader {
 public:
  virtual ~LogReader() = default;
  // Instead of any text.
  virtual void fail(base::Error error) = 0;
  // False: nobody reads any more. The first call may be empty: it says that there is a log.
  virtual bool write(std::string text) = 0;
  virtual void end() = 0;
};

class ContainerLogs {
 public:
  virtual ~ContainerLogs() = default;
  virtual void read(LogQuery query, std::shared_ptr<LogReader> reader) = 0;
};

}  // namespace tessera::apiserver
