// The columns that `kubectl get` shows, as kube-apiserver's printers fill them.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/printers/internalversion.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/kind.h"

namespace tessera::apiserver {

using Cell = std::function<json::Value(const kube::Object&, base::Time now)>;

// Building blocks for the columns of a new kind.
Column name_column();
Column age_column();
Column text_column(std::string name, Cell cell);
Column wide_column(std::string name, Cell cell);
Column number_column(std::string name, Cell cell);
Column bool_column(std::string name, Cell cell);
// The text at a path of members, such as {"spec", "volumeName"}; `otherwise` where there is none.
Cell text_at(std::initializer_list<const char*> path, const char* otherwise = "");
Cell number_at(const char* part, const char* field);
// "a,b + 3 more..." of a list that shows at most three; `count` is how many there are.
std::string with_more(const std::vector<std::string>& shown, size_t count);
// "3m20s" since an RFC 3339 time; "<unknown>" where it is none.
std::string since(const json::Value& time, base::Time now);
// Names, images of the containers of a list, joined by commas.
std::string joined(const json::Value& list, std::string_view member);
// A LabelSelector or a map of labels as text; "<none>" where it is empty.
std::string selector_text(const json::Value& selector);
std::string labels_text(const json::Value& labels);
// The three wide columns of workloads: containers, images, selector.
void add_template_columns(std::vector<Column>& columns);
// Names and images of the containers of a template.
std::pair<Column, Column> container_columns(std::initializer_list<const char*> pod_template);

std::vector<Column> pod_columns();
std::vector<Column> node_columns();
std::vector<Column> namespace_columns();
std::vector<Column> config_map_columns();
std::vector<Column> secret_columns();
std::vector<Column> service_account_columns();
std::vector<Column> service_columns();
std::vector<Column> event_columns();
std::vector<Column> deployment_columns();
std::vector<Column> replica_set_columns();
std::vector<Column> job_columns();
std::vector<Column> stateful_set_columns();
std::vector<Column> daemon_set_columns();
std::vector<Column> controller_revision_columns();
std::vector<Column> cron_job_columns();
std::vector<Column> pod_template_columns();
std::vector<Column> replication_controller_columns();
std::vector<Column> resource_quota_columns();
std::vector<Column> limit_range_columns();
std::vector<Column> disruption_budget_columns();
std::vector<Column> autoscaler_columns();
std::vector<Column> runtime_class_columns();
std::vector<Column> persistent_volume_columns();
std::vector<Column> persistent_volume_claim_columns();
std::vector<Column> storage_class_columns();
std::vector<Column> csi_node_columns();
std::vector<Column> csi_driver_columns();
std::vector<Column> volume_attachment_columns();
std::vector<Column> network_policy_columns();
std::vector<Column> ingress_columns();
std::vector<Column> ingress_class_columns();
std::vector<Column> endpoints_columns();
std::vector<Column> endpoint_slice_columns();
std::vector<Column> role_columns();
std::vector<Column> binding_columns();  // of roles
std::vector<Column> priority_class_columns();
std::vector<Column> lease_columns();

}  // namespace tessera::apiserver
