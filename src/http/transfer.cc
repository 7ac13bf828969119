#include "http/transfer.h"

#include <algorithm>
#include <string_view>

namespace tessera::http {
namespace {

using base::Code;

constexpr size_t kErrorBodyMax = size_t{1} << 20;  // of a refused stream

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; });
}

size_t on_header(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  std::string_view line(data, size);
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  if (line.substr(0, 5) == "HTTP/") {  // a new answer begins, after "100 Continue" for instance
    transfer.response = {};
    transfer.response.content_type.clear();
    transfer.header_ended = false;
    return size;
  }
  if (line.empty()) transfer.header_ended = true;
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
  if (name == "content-type") transfer.response.content_type = std::string(value);
  transfer.response.headers.emplace_back(std::move(name), std::string(value));
  return size;
}

size_t on_body(char* data, size_t, size_t size, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  curl_easy_getinfo(transfer.handle.get(), CURLINFO_RESPONSE_CODE, &status);
  if (transfer.stream && status == 200) {
    if (transfer.stream->queued_bytes > kStreamQueueMax) {
      transfer.paused = true;
      return CURL_WRITEFUNC_PAUSE;
    }
    transfer.deliver(std::string(data, size));
    return size;
  }
  std::string& body = transfer.response.body;
  if (body.size() + size > transfer.body_bytes_max) {
    transfer.too_large = true;
    return 0;
  }
  body.append(data, size);
  return size;
}

void set_identity(CURL* handle, const ClientOptions& options) {
  // The options outlive the handle, so nothing is copied.
  const auto blob = [handle](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob value{};
    value.data = const_cast<char*>(pem.data());
    value.len = pem.size();
    value.flags = CURL_BLOB_NOCOPY;
    curl_easy_setopt(handle, option, &value);
  };
  if (!options.ca_pem.empty()) {
    blob(CURLOPT_CAINFO_BLOB, options.ca_pem);
    curl_easy_setopt(handle, CURLOPT_CAPATH, nullptr);  // this CA and no other
  }
  blob(CURLOPT_SSLCERT_BLOB, options.certificate_pem);
  blob(CURLOPT_SSLKEY_BLOB, options.private_key_pem);
  curl_easy_setopt(handle, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

void set_limits(Transfer& transfer, const ClientOptions& options) {
  CURL* handle = transfer.handle.get();
  curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS,
                   transfer.stream ? 0L : static_cast<long>(options.request_timeout.millis()));
  transfer.body_bytes_max =
      transfer.stream ? std::min(kErrorBodyMax, options.body_bytes_max) : options.body_bytes_max;
}

void set_headers(Transfer& transfer) {
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) {
    list = curl_slist_append(list, line.c_str());
    (void)transfer.headers.release();
    transfer.headers.reset(list);
  };
  add("Expect:");  // no waiting for "100 Continue"
  bool has_type = false;
  for (const auto& [name, value] : transfer.request.headers) {
    has_type = has_type || curl_strequal(name.c_str(), "content-type") != 0;
    add(value.empty() ? name + ";" : name + ": " + value);
  }
  if (!has_type) add("Content-Type:");  // libcurl would call every body a form
  curl_easy_setopt(transfer.handle.get(), CURLOPT_HTTPHEADER, transfer.headers.get());
}

void set_method(CURL* handle, const ClientRequest& request) {
  curl_easy_setopt(handle, CURLOPT_HTTPGET, 1L);  // forgets the body of an earlier request
  if (request.method == "HEAD") {
    curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, nullptr);
    return;
  }
  if (sends_body(request)) {
    curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(handle, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  curl_easy_setopt(handle, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

Code code_of(CURLcode code, std::string_view reason) {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return Code::kTimeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
      return Code::kUnauthorized;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Code::kBadRequest;
    default:
      // With TLS 1.3 the server refuses our certificate only after the handshake.
      return reason.find(" alert ") != std::string_view::npos ? Code::kUnauthorized
                                                              : Code::kUnavailable;
  }
}

}  // namespace

bool is_loopback(std::string_view url) {
  const size_t host = url.find("://");
  if (host == std::string_view::npos) return false;
  url.remove_prefix(host + 3);
  return url.substr(0, 4) == "127." || url.substr(0, 5) == "[::1]" ||
         url.substr(0, 9) == "localhost";
}

bool sends_body(const ClientRequest& request) {
  return !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
         request.method == "PATCH";
}

base::Status check_request(const ClientRequest& request) {
  const bool plain_target = !request.target.empty() && request.target[0] == '/' &&
                            !has_control(request.target) &&
                            request.target.find(' ') == std::string::npos;
  if (!plain_target || request.method.empty() || has_control(request.method) ||
      request.method.find(' ') != std::string::npos) {
    return base::error(Code::kBadRequest,
                       "cannot send {} \"{}\": the target must start with / and be "
                       "percent-encoded",
                       request.method, request.target);
  }
  for (const auto& [name, value] : request.headers) {
    if (!name.empty() && !has_control(name) && !has_control(value) &&
        name.find_first_of(": ") == std::string::npos) {
      continue;
    }
    return base::error(Code::kBadRequest,
                       "the header \"{}\" cannot be sent: it has a line break "
                       "or another control character",
                       name);
  }
  return {};
}

base::Status stream_end(base::Result<Response> result) {
  if (!result) return tl::unexpected(std::move(result).error());
  if (result->status == 200) return {};
  return base::error(base::code_of_http_status(result->status), "{}", result->body);
}

HandlePtr make_handle(const ClientOptions& options) {
  HandlePtr made(curl_easy_init());
  CURL* handle = made.get();
  if (handle == nullptr) return made;
  curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(handle, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(handle, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(handle, CURLOPT_USERAGENT, "tessera");
  if (is_loopback(options.base_url)) curl_easy_setopt(handle, CURLOPT_PROXY, "");
  curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(options.connect_timeout.millis()));
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPIDLE, 60L);
  curl_easy_setopt(handle, CURLOPT_TCP_KEEPINTVL, 20L);
  set_identity(handle, options);
  return made;
}

base::Status prepare(Transfer& transfer, const ClientOptions& options) {
  CURL* handle = transfer.handle.get();
  if (handle == nullptr) return base::error(Code::kInternal, "cannot make an HTTP transfer");
  const ClientRequest& request = transfer.request;
  TS_TRY_STATUS(check_request(request));
  curl_easy_setopt(handle, CURLOPT_URL, (options.base_url + request.target).c_str());
  curl_easy_setopt(handle, CURLOPT_ERRORBUFFER, transfer.reason);
  curl_easy_setopt(handle, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(handle, CURLOPT_WRITEDATA, &transfer);
  set_limits(transfer, options);
  set_method(handle, request);
  set_headers(transfer);
  return {};
}

base::Result<Response> outcome(Transfer& transfer, CURLcode code, const ClientOptions& options) {
  const ClientRequest& request = transfer.request;
  if (code == CURLE_OK && !transfer.header_ended) {  // libcurl takes a cut header for a whole one
    return base::error(Code::kUnavailable, "{} {}{}: the connection was cut within the answer",
                       request.method, options.base_url, request.target);
  }
  if (code == CURLE_OK) {
    long status = 0;
    curl_easy_getinfo(transfer.handle.get(), CURLINFO_RESPONSE_CODE, &status);
    transfer.response.status = static_cast<int>(status);
    return std::move(transfer.response);
  }
  if (transfer.too_large) {
    return base::error(Code::kTooLarge, "the answer to {} {} is larger than {} bytes",
                       request.method, request.target, transfer.body_bytes_max);
  }
  const std::string_view reason =
      transfer.reason[0] != '\0' ? transfer.reason : curl_easy_strerror(code);
  const std::string_view mend =
      code == CURLE_COULDNT_CONNECT ? " (is the server running, and is this its address?)" : "";
  return base::error(code_of(code, reason), "{} {}{}: {}{}", request.method, options.base_url,
                     request.target, reason, mend);
}

}  // namespace tessera::http
