// One request of the client on its libcurl handle: options in, bytes out, the outcome as a Result.
//
// Threads: the client's; `dropped` and `queued_bytes` from any.
#pragma once

#include <curl/curl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "http/client.h"

namespace tessera::http {

// What a stream's subscription, its transfer and its tasks on the executor share.
struct StreamState {
  std::function<void(std::string)> on_chunk;
  std::function<void(base::Status)> on_close;
  std::atomic<bool> dropped = false;
  std::atomic<size_t> queued_bytes = 0;  // handed to the executor, not yet to on_chunk
};

struct HandleFree {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using HandlePtr = std::unique_ptr<CURL, HandleFree>;

struct Transfer {
  struct ListFree {
    void operator()(curl_slist* list) const { curl_slist_free_all(list); }
  };

  uint64_t id = 0;
  ClientRequest request;
  std::function<void(base::Result<Response>)> done;  // of a call
  std::shared_ptr<StreamState> stream;               // of a stream
  // Hands one piece of a stream's body on.
  std::function<void(std::string)> deliver;

  HandlePtr handle;
  std::unique_ptr<curl_slist, ListFree> headers;
  Response response;
  size_t body_bytes_max = 0;
  bool header_ended = false;
  bool too_large = false;
  bool paused = false;
  char reason[CURL_ERROR_SIZE] = {};
};

// A handle with all that no request changes: identity, protocol, limits on connecting. Null where libcurl has none.
HandlePtr make_handle(const ClientOptions& options);
// Sets the transfer's handle, new or of an earlier call, up for its request. Errors: kBadRequest for a target or header
// that cannot be sent.
base::Status prepare(Transfer& transfer, const ClientOptions& options);
// Errors: kBadRequest for a method, target or header that cannot be sent.
base::Status check_request(const ClientRequest& request);
bool sends_body(const ClientRequest& request);
bool is_loopback(std::string_view url);
// Of a stream: bytes that wait for the executor, from which on the socket is not read until it has caught up.
inline constexpr size_t kStreamQueueMax = size_t{16} << 20;
inline constexpr size_t kResumeBelow = size_t{8} << 20;
// How a stream whose answer is complete has ended.
base::Status stream_end(base::Result<Response> result);
// What became of the request.
base::Result<Response> outcome(Transfer& transfer, CURLcode code, const ClientOptions& options);

}  // namespace tessera::http
