#include "apiserver/admission_account.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/json_edit.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr std::string_view kVolumePrefix = "kube-api-access-";
constexpr const char* kMountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
constexpr std::string_view kDefaultAccount = "default";
constexpr int kSuffixLength = 5;
constexpr int64_t kTokenSeconds = 3607;
constexpr int64_t kVolumeMode = 0644;

Value token_source() {
  const Value token = Value::object({{"expirationSeconds", kTokenSeconds}, {"path", "token"}});
  const Value certificate = Value::object(
      {{"name", "kube-root-ca.crt"},
       {"items", Value::array({Value::object({{"key", "ca.crt"}, {"path", "ca.crt"}})})}});
  const Value ns = Value::object(
      {{"path", "namespace"},
       {"fieldRef", Value::object({{"apiVersion", "v1"}, {"fieldPath", "metadata.namespace"}})}});
  return Value::object(
      {{"defaultMode", kVolumeMode},
       {"sources",
        Value::array(
            {Value::object({{"serviceAccountToken", token}}),
             Value::object({{"configMap", certificate}}),
             Value::object({{"downwardAPI", Value::object({{"items", Value::array({ns})}})}})})}});
}

// Which account the pod asks for; the deprecated name of the field goes along.
void name_account(Value& spec) {
  if (spec["serviceAccountName"].as_string().empty()) {
    const std::string old = spec["serviceAccount"].str();
    spec.set("serviceAccountName", old.empty() ? std::string(kDefaultAccount) : old);
  }
  if (!(spec["serviceAccount"] == spec["serviceAccountName"])) {
    spec.set("serviceAccount", spec["serviceAccountName"]);
  }
}

Value default_account(const Kind& kind, std::string_view ns) {
  return Value::object(
      {{"apiVersion", kind.api_version()},
       {"kind", kind.kind},
       {"metadata", Value::object({{"name", kDefaultAccount}, {"namespace", ns}})}});
}

// Every namespace is about to have its default account: a pod that comes before the controller made it does not wait.
Value find_account(Core& core, const Call& call, std::string_view name) {
  const Kind& kind = *core.service_accounts;
  const std::string key = store_key(kind, call.request.ns, name);
  Store::Found found = core.store->latest(&kind, key);
  if (found || name != kDefaultAccount) return found.object;
  if (call.dry_run) return default_account(kind, call.request.ns);
  auto create = std::make_shared<Call>();
  create->kind = &kind;
  create->caller = system_caller("apiserver");
  create->request.verb = kube::Verb::kCreate;
  create->request.gvr = kind.gvr();
  create->request.ns = call.request.ns;
  create->request.body = default_account(kind, call.request.ns);
  create->done = [](const ApiReply&) {};
  do_create(core, create);
  return core.store->latest(&kind, key).object;
}

bool wants_token(const Value& account, const Value& spec) {
  constexpr const char* kField = "automountServiceAccountToken";
  return spec[kField].as_bool(account[kField].as_bool(true));
}

// True when at least one container got the mount.
bool mount_everywhere(Value& spec, const TokenVolumes::Parts& parts) {
  bool mounted = false;
  for (const char* list : {"initContainers", "containers"}) {
    each_of(spec, list, [&](Value& container) {
      const Value& mounts = container["volumeMounts"];
      if (mounts.empty()) {
        container.set("volumeMounts", parts.mounts);
      } else if (std::ranges::any_of(mounts.items(), [](const Value& mount) {
                   return mount["mountPath"].as_string() == kMountPath;
                 })) {
        return;
      } else {
        container.ref("volumeMounts").push_back(parts.mount);
      }
      mounted = true;
    });
  }
  return mounted;
}

void mount_token(Core& core, Value& spec) {
  const auto& volumes = spec["volumes"].items();
  const auto there = std::ranges::find_if(volumes, [](const Value& volume) {
    return volume["name"].as_string().starts_with(kVolumePrefix);
  });
  const bool has_volume = there != volumes.end();
  const TokenVolumes::Parts parts =
      has_volume ? TokenVolumes::parts_of((*there)["name"]) : core.token_volumes.pick();
  if (!mount_everywhere(spec, parts) || has_volume) return;
  if (spec["volumes"].empty()) {
    spec.set("volumes", parts.volumes);
  } else {
    spec.ref("volumes").push_back(parts.volume);
  }
}

}  // namespace

TokenVolumes::Parts TokenVolumes::parts_of(const Value& name) {
  static const Value kSource = token_source();
  const Value volume = Value::object({{"name", name}, {"projected", kSource}});
  const Value mount =
      Value::object({{"name", name}, {"readOnly", true}, {"mountPath", kMountPath}});
  return {volume, Value::array({volume}), mount, Value::array({mount})};
}

TokenVolumes::Parts TokenVolumes::pick() {
  const size_t index = core_.draw(kCount);
  const std::lock_guard lock(mutex_);
  Parts& parts = made_[index];
  if (parts.volume.is_null()) {
    parts = parts_of(Value(std::string(kVolumePrefix) + core_.suffix(kSuffixLength)));
  }
  return parts;
}

base::Status admit_account(Core& core, const Call& call, Value& pod) {
  const std::string name = pod["metadata"]["name"].str();
  Value& spec = pod.ref("spec");
  name_account(spec);
  if (core.service_accounts == nullptr) return {};
  const std::string account_name = spec["serviceAccountName"].str();
  const Value account = find_account(core, call, account_name);
  if (account.is_null()) {
    return base::error(forbidden(
        *core.pods, name,
        fmt::format("error looking up service account {}/{}: serviceaccount \"{}\" not found",
                    call.request.ns, account_name, account_name)));
  }
  if (wants_token(account, spec)) mount_token(core, spec);
  if (spec["imagePullSecrets"].empty() && !account["imagePullSecrets"].empty()) {
    spec.set("imagePullSecrets", account["imagePullSecrets"]);
  }
  return {};
}

}  // namespace tessera::apiserver
