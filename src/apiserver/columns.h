// The columns that `kubectl get` shows, as kube-apiserver's printers fill them.
//
// Source:  k8s.io/kubernetes v1.36.3 pkg/printers/internalversion.
#pragma once

#include <functional>
#include <string>
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
// "3m20s" since an RFC 3339 time; "<unknown>" where it is none.
std::string since(const json::Value& time, base::Time now);
// Names, images of the containers of a list, joined by commas.
std::string joined(const json::Value& list, std::string_view member);
// A LabelSelector or a map of labels as text; "<none>" where it is empty.
std::string selector_text(const json::Value& selector);
std::string labels_text(const json::Value& labels);
// The three wide columns of workloads: containers, images, selector.
void add_template_columns(std::vector<Column>& columns);

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
std::vector<Column> priority_class_columns();
std::vector<Column> lease_columns();

}  // namespace tessera::apiserver
