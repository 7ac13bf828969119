#include "kube/client.h"

namespace tessera::kube {
namespace {

Request make(Verb verb, Gvr gvr, std::string ns, std::string name) {
  Request request;
  request.verb = verb;
  request.gvr = std::move(gvr);
  request.ns = std::move(ns);
  request.name = std::move(name);
  return request;
}

}  // namespace

void Client::get(Gvr gvr, std::string ns, std::string name, std::function<void(Reply)> done) {
  call(make(Verb::kGet, std::move(gvr), std::move(ns), std::move(name)), std::move(done));
}

void Client::list(Gvr gvr, std::string ns, std::function<void(Reply)> done) {
  call(make(Verb::kList, std::move(gvr), std::move(ns), {}), std::move(done));
}

void Client::create(Gvr gvr, std::string ns, json::Value object, std::function<void(Reply)> done) {
  Request request = make(Verb::kCreate, std::move(gvr), std::move(ns), {});
  request.body = std::move(object);
  call(std::move(request), std::move(done));
}

void Client::update(Gvr gvr, std::string ns, std::string name, json::Value object,
                    std::function<void(Reply)> done, std::string subresource) {
  Request request = make(Verb::kUpdate, std::move(gvr), std::move(ns), std::move(name));
  request.body = std::move(object);
  request.subresource = std::move(subresource);
  call(std::move(request), std::move(done));
}

void Client::merge_patch(Gvr gvr, std::string ns, std::string name, json::Value patch,
                         std::function<void(Reply)> done, std::string subresource) {
  Request request = make(Verb::kPatch, std::move(gvr), std::move(ns), std::move(name));
  request.body = std::move(patch);
  request.patch_type = PatchType::kMerge;
  request.subresource = std::move(subresource);
  call(std::move(request), std::move(done));
}

void Client::remove(Gvr gvr, std::string ns, std::string name, std::function<void(Reply)> done,
                    json::Value delete_options) {
  Request request = make(Verb::kDelete, std::move(gvr), std::move(ns), std::move(name));
  request.body = std::move(delete_options);
  call(std::move(request), std::move(done));
}

}  // namespace tessera::kube
