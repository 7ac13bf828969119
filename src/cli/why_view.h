// What `tessera why` answers about a job, from the objects of its namespace.
//
// Shape:   parse_target() reads how a job is named, explain() finds its pods and says of each of its gangs whether it waits
//          and why, where it runs, or how it ended; render() and to_json() show it. A bare name is that of a pod, else of a
//          Job, else of a PodGroup, else of another owner.
// Errors:  parse_target: kBadRequest. explain: kNotFound, with what could be looked at instead.
// Threads: pure, but for the functions of GroupSources.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "kube/object.h"
#include "scheduler/groups.h"
#include "scheduler/verdict.h"

namespace tessera::cli {

struct WhyTarget {
  std::string kind{};   // in small letters, as given; empty: any
  std::string group{};  // of "job.batch"; empty: any
  std::string name{};
};
base::Result<WhyTarget> parse_target(std::string_view text);
// Whether an object of this kind is meant by target.kind: "job", "jobs", "Job.batch", "deploy".
bool is_kind(const WhyTarget& target, std::string_view api_version, std::string_view kind);

struct WhyPlace {
  std::string pod{};
  std::string node{};
  std::string gpus{};  // as bound, "0,3"; empty: none
};

struct WhyGang {
  std::string job{};
  int64_t waiting = 0;
  int64_t going = 0;     // being deleted
  int64_t starting = 0;  // has a place
  int64_t running = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  std::optional<scheduler::Verdict> verdict{};
  std::string instead{};    // why there is none
  std::string condition{};  // what the pod's condition says then
  std::string pod{};        // that it was read from
  std::vector<WhyPlace> places{};
  std::optional<base::Time> since{};  // the first of them
};

struct WhyEvent {
  std::string time{};
  std::string reason{};
  std::string pod{};
  std::string message{};
};

struct WhyAnswer {
  std::string title{};           // "Job ml/train"
  std::vector<WhyGang> gangs{};  // those that wait first
  std::vector<WhyEvent> events{};
  std::string state{};  // of the job, where it has no pods
};

struct WhyWorld {
  std::string ns{};
  std::vector<kube::Object> pods{};    // of the namespace
  std::vector<kube::Object> events{};  // of evictions, by the scheduler
  scheduler::GroupSources sources{};
  // Jobs, PodGroups and owners of that name which exist, for those without pods.
  std::vector<kube::Object> named{};
};

base::Result<WhyAnswer> explain(const WhyTarget& target, const WhyWorld& world);
json::Value to_json(const WhyAnswer& answer);
// Each line ended by a line feed.
std::string render(const WhyAnswer& answer);

}  // namespace tessera::cli
