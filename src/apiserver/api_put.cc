// PUT to an object that is not there, of the kinds that Kubernetes lets a PUT create.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/rbac_guard.h"

namespace tessera::apiserver {
namespace {

// Source: AllowCreateOnUpdate of the strategies in k8s.io/kubernetes v1.36.3 pkg/registry.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKinds = {{
    {"", "endpoints"},
    {"", "events"},
    {"", "limitranges"},
    {"", "services"},
    {"coordination.k8s.io", "leases"},
    {"rbac.authorization.k8s.io", "clusterroles"},
    {"rbac.authorization.k8s.io", "clusterrolebindings"},
    {"rbac.authorization.k8s.io", "roles"},
    {"rbac.authorization.k8s.io", "rolebindings"},
}};

}  // namespace

bool put_creates(const Core& core, const Call& call) {
  const Kind& kind = *call.kind;
  const bool allowed = std::ranges::any_of(kKinds, [&](const auto& each) {
    return each.first == kind.group && each.second == kind.plural;
  });
  return allowed && call.request.subresource.empty() && !core.store->latest(&kind, call.key());
}

void create_by_put(Core& core, const CallPtr& call) {
  const json::Value& name = call->request.body["metadata"]["name"];
  if (name.as_string() != call->request.name) {
    return fail(core, call,
                bad_request(fmt::format("the name of the object ({}) does not match the name on "
                                        "the URL ({})",
                                        name.as_string(), call->request.name)));
  }
  if (const auto may = may_create(core, *call); !may) return fail(core, call, may.error());
  // A uid stands for an object that was there: its writer must hear that it has gone.
  if (const json::Value& uid = call->request.body["metadata"]["uid"]; !uid.as_string().empty()) {
    json::Value nothing;
    nothing.ref("metadata", "name") = call->request.name;
    nothing.ref("metadata", "namespace") = call->request.ns;
    return fail(core, call, other_uid(*call->kind, nothing, uid.as_string()));
  }
  auto create = std::make_shared<Call>(*call);
  create->request.body.ref("metadata").erase("resourceVersion");
  create->done = [&core, call](ApiReply reply) {
    // Someone else was faster: then it is an update.
    if (!reply.result && reply.result.error().code == base::Code::kAlreadyExists) {
      return do_update(core, call);
    }
    call->done(std::move(reply));
  };
  do_create(core, create);
}

}  // namespace tessera::apiserver
