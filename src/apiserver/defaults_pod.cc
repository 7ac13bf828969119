#include "apiserver/defaults_pod.h"

#include <string>
#include <vector>

#include "apiserver/json_edit.h"
#include "kube/pod.h"
#include "kube/pod_resources.h"
#include "kube/quantity.h"

namespace tessera::apiserver {
namespace {

using json::Value;

constexpr int kFileMode = 0644;
constexpr int kHourSeconds = 3600;

// True for ":latest" and for an image without tag and digest; those are pulled each time.
bool is_latest(std::string_view image) {
  if (image.empty()) return false;
  const std::string_view rest = image.substr(image.rfind('/') + 1);
  const std::string_view tagged = rest.substr(0, rest.find('@'));
  const size_t colon = tagged.find(':');
  if (colon != tagged.npos) return tagged.substr(colon + 1) == "latest";
  return rest.find('@') == rest.npos;
}

void default_field_ref(Value& owner) {
  inside(owner, "fieldRef", [](Value& ref) { set_missing(ref, "apiVersion", "v1"); });
}

void default_handler(Value& handler) {
  inside(handler, "httpGet", [](Value& get) {
    set_missing(get, "path", "/");
    set_missing(get, "scheme", "HTTP");
  });
  inside(handler, "grpc", [](Value& grpc) { set_missing(grpc, "service", ""); });
}

void default_probe(Value& probe) {
  set_missing(probe, "timeoutSeconds", 1);
  set_missing(probe, "periodSeconds", 10);
  set_missing(probe, "successThreshold", 1);
  set_missing(probe, "failureThreshold", 3);
  default_handler(probe);
}

void default_container(Value& container) {
  set_missing(container, "imagePullPolicy",
              is_latest(container["image"].as_string()) ? "Always" : "IfNotPresent");
  set_missing(container, "terminationMessagePath", "/dev/termination-log");
  set_missing(container, "terminationMessagePolicy", "File");
  each_of(container, "ports", [](Value& port) { set_missing(port, "protocol", "TCP"); });
  each_of(container, "env", [](Value& env) { inside(env, "valueFrom", default_field_ref); });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
    inside(container, probe, default_probe);
  }
  inside(container, "lifecycle", [](Value& lifecycle) {
    inside(lifecycle, "postStart", default_handler);
    inside(lifecycle, "preStop", default_handler);
  });
  inside(container, "resources", [](Value& resources) {
    for (const char* list : {"limits", "requests"}) {
      if (resources.contains(list)) round_resource_list(resources.ref(list));
    }
  });
}

void default_projection(Value& source) {
  inside(source, "serviceAccountToken",
         [](Value& token) { set_missing(token, "expirationSeconds", kHourSeconds); });
  inside(source, "downwardAPI", [](Value& api) { each_of(api, "items", default_field_ref); });
}

void default_volume(Value& volume) {
  if (volume.size() <= 1) set_missing(volume, "emptyDir", Value::object());
  for (const char* source : {"secret", "configMap", "downwardAPI", "projected"}) {
    inside(volume, source, [](Value& s) { set_missing(s, "defaultMode", kFileMode); });
  }
  inside(volume, "downwardAPI", [](Value& api) { each_of(api, "items", default_field_ref); });
  inside(volume, "projected", [](Value& p) { each_of(p, "sources", default_projection); });
  inside(volume, "hostPath", [](Value& path) { set_missing(path, "type", ""); });
  inside(volume, "image", [](Value& image) {
    set_missing(image, "pullPolicy",
                is_latest(image["reference"].as_string()) ? "Always" : "IfNotPresent");
  });
  inside(volume, "ephemeral", [](Value& ephemeral) {
    inside(ephemeral, "volumeClaimTemplate", [](Value& claim) {
      inside(claim, "spec", [](Value& spec) { set_missing(spec, "volumeMode", "Filesystem"); });
    });
  });
}

// spec.serviceAccount is the old name of serviceAccountName; both are shown.
void mirror_service_account(Value& spec) {
  if (spec.contains("serviceAccountName")) {
    const Value name = spec["serviceAccountName"];
    spec.set("serviceAccount", name);
  } else if (spec.contains("serviceAccount")) {
    const Value name = spec["serviceAccount"];
    spec.set("serviceAccountName", name);
  }
}

void default_pod_spec(Value& spec) {
  set_missing(spec, "dnsPolicy", "ClusterFirst");
  set_missing(spec, "restartPolicy", "Always");
  set_missing(spec, "securityContext", Value::object());
  set_missing(spec, "terminationGracePeriodSeconds", 30);
  set_missing(spec, "schedulerName", "default-scheduler");
  mirror_service_account(spec);
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    each_of(spec, list, default_container);
  }
  each_of(spec, "volumes", default_volume);
  if (spec.contains("overhead")) round_resource_list(spec.ref("overhead"));
}

// What is limited and not requested is requested.
void requests_from_limits(Value& owner) {
  const Value limits = owner["resources"]["limits"];
  for (const json::Member& limit : limits.members()) {
    if (owner["resources"]["requests"].contains(limit.name())) continue;
    owner.ref("resources", "requests").set(limit.name(), limit.value);
  }
}

void default_host_ports(Value& container) {
  each_of(container, "ports", [](Value& port) {
    const Value number = port["containerPort"];
    if (port["hostPort"].as_int() == 0) port.set("hostPort", number);
  });
}

Value gated_condition(const Value& since) {
  return Value::object({{"lastProbeTime", nullptr},
                        {"lastTransitionTime", since},
                        {"type", "PodScheduled"},
                        {"status", "False"},
                        {"reason", "SchedulingGated"},
                        {"message", "Scheduling is blocked due to non-empty scheduling gates"}});
}

}  // namespace

void round_resource_list(Value& list) {
  std::vector<std::pair<std::string, std::string>> rounded;
  for (const json::Member& member : list.members()) {
    const std::string_view text = member.value.as_string();
    const bool fine = text.ends_with('n') || text.ends_with('u') || text.find("e-") != text.npos;
    if (!fine) continue;
    auto amount = kube::Quantity::parse(text);
    if (!amount) continue;
    rounded.emplace_back(member.name(), kube::Quantity::milli(amount->milli_value()).to_string());
  }
  for (const auto& [key, text] : rounded) list.set(key, text);
}

void default_pod(Value& pod) {
  if (!pod["spec"].is_object()) return;
  Value& spec = pod.ref("spec");
  default_pod_spec(spec);
  for (const char* list : {"containers", "initContainers"}) {
    each_of(spec, list, requests_from_limits);
    if (spec["hostNetwork"].as_bool()) each_of(spec, list, default_host_ports);
  }
  if (spec["resources"].is_object()) requests_from_limits(spec);
  set_missing(spec, "enableServiceLinks", true);
  if (spec["terminationGracePeriodSeconds"].as_int() < 0) {
    spec.set("terminationGracePeriodSeconds", 1);
  }
}

void default_pod_template(Value& pod_template) {
  inside(pod_template, "spec", default_pod_spec);
}

void prepare_new_pod(Value& pod) {
  Value status = Value::object({{"phase", "Pending"}});
  if (auto decoded = kube::decode_pod(kube::Object(pod))) {
    status.set("qosClass", kube::qos_class(*decoded));
  }
  if (!pod["spec"]["schedulingGates"].empty()) {
    status.set("conditions", Value::array({gated_condition(pod["metadata"]["creationTimestamp"])}));
  }
  pod.set("status", std::move(status));
}

}  // namespace tessera::apiserver
