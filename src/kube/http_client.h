// kube::Client for an API server over HTTPS.
//
// Errors:  a Status answer becomes an Error with its code, message and causes; an answer that is no
//          JSON becomes the code of its HTTP status with the text's beginning; kUnavailable and
//          kTimeout where no answer came.
// Threads: any; callbacks run on the executor of the http::Client.
// Source:  Kubernetes API concepts (paths, media types of patches, watch framing: one JSON event a
//          line).
#pragma once

#include <memory>
#include <string>

#include "http/client.h"
#include "json/interner.h"
#include "kube/client.h"

namespace tessera::kube {

// How much of objects comes. kLean is for those who hold many: metadata.managedFields, half of what a small object weighs,
// are left out, and what the objects of lists and watches have in common is kept once.
enum class Detail { kWhole, kLean };

class HttpClient : public Client {
 public:
  HttpClient(http::ClientOptions options, base::Executor& executor, Detail detail = Detail::kWhole);
  ~HttpClient() override;
  void call(Request request, std::function<void(Reply)> done) override;
  std::unique_ptr<base::Subscription> watch(Request request,
                                            std::function<void(WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override;

 private:
  base::Executor& executor_;
  Detail detail_;
  std::shared_ptr<json::Interner> interner_;  // none: kWhole
  std::unique_ptr<http::Client> http_;
};

// "/api/v1/namespaces/ns/pods/name/status" or "/apis/apps/v1/deployments", without the query.
std::string path_of(const Request& request);
// The whole request line and body. Errors: kBadRequest where the request names nothing that exists.
base::Result<http::ClientRequest> to_http(const Request& request, bool watch);
// What an answer means.
Reply from_http(const http::Response& response, Detail detail = Detail::kWhole);
base::Error error_of_status(const json::Value& status);
// What an object, or each object of a list, has in common with others is kept once.
void share_parts(json::Interner& interner, json::Value& object_or_list);

// Cuts a stream of chunks into watch events.
class WatchLines {
 public:
  explicit WatchLines(size_t line_bytes_max = size_t{64} << 20, Detail detail = Detail::kWhole,
                      json::Interner* interner = nullptr)
      : line_bytes_max_(line_bytes_max), detail_(detail), interner_(interner) {}
  // The events that the chunk completes. After an error the stream is of no more use.
  base::Result<std::vector<WatchEvent>> feed(std::string_view chunk);

 private:
  size_t line_bytes_max_;
  Detail detail_;
  json::Interner* interner_;  // for kLean, or none
  std::string rest_;
};

}  // namespace tessera::kube
