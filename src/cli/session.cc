#include "cli/session.h"

#include <future>

#include "cli/commands.h"
#include "json/parse.h"

namespace tessera::cli {
namespace {

// Runs an asynchronous call to its end.
template <class T, class Start>
T wait_for(Start start) {
  auto promise = std::make_shared<std::promise<T>>();
  auto future = promise->get_future();
  start([promise](T value) { promise->set_value(std::move(value)); });
  return future.get();
}

}  // namespace

base::Result<std::unique_ptr<Session>> Session::open(const std::string& kubeconfig_path) {
  auto config = kube::load_kubeconfig(kubeconfig_path);
  if (!config) {
    if (config.error().code == base::Code::kNotFound) {
      return base::error(base::Code::kNotFound,
                         "{}; start a cluster with `tessera up`, or name one with --kubeconfig",
                         config.error().message);
    }
    return base::error(config.error());
  }
  config->client.proxy = has_proxy();
  return std::unique_ptr<Session>(new Session(std::move(*config)));
}

Session::Session(kube::Kubeconfig config)
    : config_(std::move(config)),
      http_(std::make_unique<http::Client>(config_.client, loop_)),
      client_(std::make_unique<kube::HttpClient>(config_.client, loop_)) {}

Session::~Session() {
  loop_.stop();
}

kube::Reply Session::call(kube::Request request) {
  return wait_for<kube::Reply>(
      [&](auto done) { client_->call(std::move(request), std::move(done)); });
}

base::Result<json::Value> Session::get_path(const std::string& path) {
  http::ClientRequest request;
  request.target = path;
  request.headers = {{"accept", "application/json"}};
  TS_TRY(const http::Response response, wait_for<base::Result<http::Response>>([&](auto done) {
           http_->call(std::move(request), std::move(done));
         }));
  return kube::from_http(response);
}

base::Result<Mapping> Mapper::find(const json::Value& object) {
  const std::string version = object["apiVersion"].str();
  const std::string kind = object["kind"].str();
  if (version.empty() || kind.empty()) {
    return base::error(base::Code::kBadRequest, "apiVersion or kind is missing");
  }
  const json::Value* list = nullptr;
  for (const auto& [known, value] : lists_) {
    if (known == version) list = &value;
  }
  if (list == nullptr) {
    const bool core = version.find('/') == std::string::npos;
    auto found = session_.get_path((core ? "/api/" : "/apis/") + version);
    if (!found && found.error().code != base::Code::kNotFound) return base::error(found.error());
    lists_.emplace_back(version, found ? *found : json::Value());
    list = &lists_.back().second;
  }
  for (const json::Value& resource : (*list)["resources"].items()) {
    if (resource["kind"].as_string() != kind ||
        resource["name"].as_string().find('/') != std::string_view::npos) {
      continue;
    }
    Mapping out;
    const size_t slash = version.find('/');
    out.gvr.group = slash == std::string::npos ? "" : version.substr(0, slash);
    out.gvr.version = slash == std::string::npos ? version : version.substr(slash + 1);
    out.gvr.resource = resource["name"].str();
    out.namespaced = resource["namespaced"].as_bool();
    return out;
  }
  return base::error(base::Code::kNotFound, "the server has no kind {} in {}", kind, version);
}

}  // namespace tessera::cli
