#include "apiserver/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apiserver/kinds_fixture.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using testing::ElementsAre;
using namespace testing_kinds;

const base::Time kNow = *base::parse_rfc3339("2026-01-01T01:00:00Z");

std::vector<std::string> headers(const Kind& kind, int priority) {
  std::vector<std::string> out;
  for (const Column& column : kind.columns) {
    if (column.priority == priority) out.push_back(column.name);
  }
  return out;
}

TEST(Columns, AreThoseOfKubectl) {
  EXPECT_THAT(headers(kind_of("", "Pod"), 0),
              ElementsAre("Name", "Ready", "Status", "Restarts", "Age"));
  EXPECT_THAT(headers(kind_of("", "Pod"), 1),
              ElementsAre("IP", "Node", "Nominated Node", "Readiness Gates"));
  EXPECT_THAT(headers(kind_of("", "Node"), 0),
              ElementsAre("Name", "Status", "Roles", "Age", "Version"));
  EXPECT_THAT(headers(kind_of("apps", "Deployment"), 0),
              ElementsAre("Name", "Ready", "Up-to-date", "Available", "Age"));
  EXPECT_THAT(headers(kind_of("batch", "Job"), 1), ElementsAre("Containers", "Images", "Selector"));
  EXPECT_THAT(headers(kind_of("", "Event"), 0),
              ElementsAre("Last Seen", "Type", "Reason", "Object", "Message"));
  EXPECT_THAT(headers(kind_of("scheduling.k8s.io", "PriorityClass"), 0),
              ElementsAre("Name", "Value", "Global-Default", "Age", "PreemptionPolicy"));
}

TEST(Columns, EveryKindFillsEveryCellOfAnEmptyObject) {
  for (const Kind* kind : Kinds::builtin().all()) {
    for (const Column& column : kind->columns) {
      const Value value = column.cell(kube::Object(Value::object()), kNow);
      if (column.type == "integer") {
        EXPECT_TRUE(value.is_int()) << kind->kind << " " << column.name;
      }
    }
  }
}

struct PodCase {
  const char* pod;
  const char* ready;
  const char* status;
  const char* restarts;
};

TEST(Columns, PodStatusFollowsItsContainers) {
  const PodCase cases[] = {
      {"{spec: {containers: [{name: c}]}, status: {phase: Pending}}", "0/1", "Pending", "0"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Running, containerStatuses: [{name: c, "
       "ready: true, restartCount: 0, state: {running: {}}}]}}",
       "1/1", "Running", "0"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Running, containerStatuses: [{name: c, "
       "restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: "
       "{finishedAt: \"2026-01-01T00:55:00Z\", exitCode: 1}}}]}}",
       "0/1", "CrashLoopBackOff", "3 (5m ago)"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Succeeded, containerStatuses: [{name: c, "
       "state: {terminated: {reason: Completed, exitCode: 0}}}]}}",
       "0/1", "Completed", "0"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Failed, containerStatuses: [{name: c, "
       "state: {terminated: {reason: Error, exitCode: 1}}}]}}",
       "0/1", "Error", "0"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Failed, containerStatuses: [{name: c, "
       "state: {terminated: {signal: 9, exitCode: 137}}}]}}",
       "0/1", "Signal:9", "0"},
      {"{spec: {initContainers: [{name: i}, {name: j}], containers: [{name: c}]}, status: {phase: "
       "Pending, initContainerStatuses: [{name: i, state: {terminated: {exitCode: 0}}}, {name: j, "
       "state: {running: {}}}], containerStatuses: [{name: c, state: {waiting: {reason: "
       "PodInitializing}}}]}}",
       "0/1", "Init:1/2", "0"},
      {"{spec: {initContainers: [{name: i}], containers: [{name: c}]}, status: {phase: Pending, "
       "initContainerStatuses: [{name: i, restartCount: 2, state: {waiting: {reason: "
       "CrashLoopBackOff}}}]}}",
       "0/1", "Init:CrashLoopBackOff", "2"},
      {"{spec: {initContainers: [{name: i, restartPolicy: Always}], containers: [{name: c}]}, "
       "status: "
       "{phase: Running, initContainerStatuses: [{name: i, ready: true, started: true, "
       "restartCount: "
       "1, state: {running: {}}}], containerStatuses: [{name: c, ready: true, state: {running: "
       "{}}}]}}",
       "2/2", "Running", "1"},
      {"{metadata: {deletionTimestamp: \"2026-01-01T00:00:00Z\"}, spec: {containers: [{name: c}]}, "
       "status: {phase: Running}}",
       "0/1", "Terminating", "0"},
      {"{spec: {containers: [{name: c}]}, status: {phase: Failed, reason: "
       "UnexpectedAdmissionError}}",
       "0/1", "UnexpectedAdmissionError", "0"},
      {"{spec: {containers: [{name: c}, {name: d}]}, status: {phase: Running, conditions: [{type: "
       "Ready, status: \"False\"}], containerStatuses: [{name: c, state: {terminated: {reason: "
       "Completed, exitCode: 0}}}, {name: d, ready: true, state: {running: {}}}]}}",
       "1/2", "NotReady", "0"},
  };
  const Kind& kind = kind_of("", "Pod");
  for (const PodCase& c : cases) {
    const Value pod = from_yaml(c.pod);
    EXPECT_EQ(cell(kind, pod, "Ready", kNow), c.ready) << c.pod;
    EXPECT_EQ(cell(kind, pod, "Status", kNow), c.status) << c.pod;
    EXPECT_EQ(cell(kind, pod, "Restarts", kNow), c.restarts) << c.pod;
    EXPECT_EQ(cell(kind, pod, "Node", kNow), "<none>");
  }
}

TEST(Columns, NodeShowsStateRolesAndAddresses) {
  const Kind& kind = kind_of("", "Node");
  const Value node = from_yaml(R"(
metadata: {labels: {node-role.kubernetes.io/worker: "", node-role.kubernetes.io/gpu: ""}}
spec: {unschedulable: true}
status:
  conditions: [{type: Ready, status: "True"}]
  addresses: [{type: InternalIP, address: 10.0.0.1}]
  nodeInfo: {kernelVersion: "6.1", architecture: amd64, kubeletVersion: v1.36.3})");
  EXPECT_EQ(cell(kind, node, "Status"), "Ready,SchedulingDisabled");
  EXPECT_EQ(cell(kind, node, "Roles"), "gpu,worker");
  EXPECT_EQ(cell(kind, node, "Version"), "v1.36.3");
  EXPECT_EQ(cell(kind, node, "Internal-IP"), "10.0.0.1");
  EXPECT_EQ(cell(kind, node, "External-IP"), "<none>");
  EXPECT_EQ(cell(kind, node, "Kernel-Version"), "6.1 (amd64)");
  EXPECT_EQ(cell(kind, node, "OS-Image"), "<unknown>");
  EXPECT_EQ(cell(kind, Value::object(), "Status"), "Unknown");
}

TEST(Columns, JobShowsProgressAndDuration) {
  const Kind& kind = kind_of("batch", "Job");
  const Value job = from_yaml(R"(
spec: {completions: 4, parallelism: 2, selector: {matchLabels: {a: b}},
  template: {spec: {containers: [{name: c, image: x}, {name: d, image: z}]}}}
status: {succeeded: 1, startTime: "2026-01-01T00:50:00Z"})");
  EXPECT_EQ(cell(kind, job, "Status", kNow), "Running");
  EXPECT_EQ(cell(kind, job, "Completions", kNow), "1/4");
  EXPECT_EQ(cell(kind, job, "Duration", kNow), "10m");
  EXPECT_EQ(cell(kind, job, "Containers", kNow), "c,d");
  EXPECT_EQ(cell(kind, job, "Images", kNow), "x,z");
  EXPECT_EQ(cell(kind, job, "Selector", kNow), "a=b");
  const Value done = from_yaml(
      "{spec: {parallelism: 3}, status: {startTime: \"2026-01-01T00:00:00Z\", completionTime: "
      "\"2026-01-01T00:00:30Z\", conditions: [{type: Complete, status: \"True\"}]}}");
  EXPECT_EQ(cell(kind, done, "Status", kNow), "Complete");
  EXPECT_EQ(cell(kind, done, "Completions", kNow), "0/1 of 3");
  EXPECT_EQ(cell(kind, done, "Duration", kNow), "30s");
}

TEST(Columns, ServiceAndEventAndSecret) {
  const Value service = from_yaml(R"(
spec: {type: NodePort, clusterIP: 10.96.0.9, selector: {a: b},
  ports: [{port: 80, nodePort: 30080, protocol: TCP}, {port: 53, protocol: UDP}]})");
  const Kind& services = kind_of("", "Service");
  EXPECT_EQ(cell(services, service, "Port(s)"), "80:30080/TCP,53/UDP");
  EXPECT_EQ(cell(services, service, "External-IP"), "<none>");
  EXPECT_EQ(cell(services, service, "Selector"), "a=b");
  const Value event = from_yaml(R"(
involvedObject: {kind: Pod, name: p, fieldPath: "spec.containers{c}"}
message: " hello "
lastTimestamp: "2026-01-01T00:59:50Z"
firstTimestamp: "2026-01-01T00:50:00Z"
count: 4
source: {component: kubelet, host: n1})");
  const Kind& events = kind_of("", "Event");
  EXPECT_EQ(cell(events, event, "Last Seen", kNow), "10s");
  EXPECT_EQ(cell(events, event, "First Seen", kNow), "10m");
  EXPECT_EQ(cell(events, event, "Object", kNow), "pod/p");
  EXPECT_EQ(cell(events, event, "Source", kNow), "kubelet, n1");
  EXPECT_EQ(cell(events, event, "Message", kNow), "hello");
  EXPECT_EQ(cell(events, event, "Count", kNow), "4");
  EXPECT_EQ(cell(kind_of("", "Secret"), from_yaml("{type: Opaque, data: {a: YQ==}}"), "Data"), "1");
}

}  // namespace
}  // namespace tessera::apiserver
