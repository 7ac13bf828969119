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
#include "kube/client.h"

namespace tessera::kube {

// Whether objects come with metadata.managedFields: half of what a small object weighs, and only of use to those who show it.
enum class ManagedFields { kKept, kLeftOut };

class HttpClient : public Client {
 public:
  HttpClient(http::ClientOptions options, base::Executor& executor,
             ManagedFields managed_fields = ManagedFields::kKept);
  ~HttpClient() override;
  void call(Request request, std::function<void(Reply)> done) override;
  std::unique_ptr<base::Subscription> watch(Request request,
                                            std::function<void(WatchEvent)> on_event,
                                            std::function<void(base::Status)> on_close) override;

 private:
  base::Executor& executor_;
  ManagedFields managed_fields_;
  std::unique_ptr<http::Client> http_;
};

// "/api/v1/namespaces/ns/pods/name/status" or "/apis/apps/v1/deployments", without the query.
std::string path_of(const Request& request);
// The whole request line and body. Errors: kBadRequest where the request names nothing that exists.
base::Result<http::ClientRequest> to_http(const Request& request, bool watch);
// What an answer means.
Reply from_http(const http::Response& response,
                ManagedFields managed_fields = ManagedFields::kKept);
base::Error error_of_status(const json::Value& status);

// Cuts a stream of chunks into watch events.
class WatchLines {
 public:
  explicit WatchLines(size_t line_bytes_max = size_t{64} << 20,
                      ManagedFields managed_fields = ManagedFields::kKept)
      : line_bytes_max_(line_bytes_max), managed_fields_(managed_fields) {}
  // The events that the chunk completes. After an error the stream is of no more use.
  base::Result<std::vector<WatchEvent>> feed(std::string_view chunk);

 private:
  size_t line_bytes_max_;
  ManagedFields managed_fields_;
  std::string rest_;
};

}  // namespace tessera::kube
