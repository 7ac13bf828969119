// One Lease behind a Client, with faults by hand, and a clock that can jump.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/executor.h"
#include "kube/client.h"
#include "kube/lease.h"

namespace tessera::kube::testing {

// A loop's time, moved by hand against it.
class JumpyClock : public base::Clock {
 public:
  explicit JumpyClock(const base::ManualLoop& loop) : loop_(loop) {}
  base::Time now() const override {
    return base::Time{1'767'225'600'000'000'000} + loop_.now() + wall_jump;
  }
  base::Duration monotonic() const override { return loop_.now() + base::seconds(77) + passed; }

  base::Duration wall_jump;
  base::Duration passed;  // while nothing ran

 private:
  const base::ManualLoop& loop_;
};

class LeaseApi : public Client {
 public:
  explicit LeaseApi(base::ManualLoop& loop) : loop_(loop) {}

  std::optional<json::Value> lease;
  std::vector<Request> asked;
  // Asked before each call: a code refuses it.
  std::function<std::optional<base::Code>(const Request&)> refuse;
  // Asked after each call: true keeps the answer for ever.
  std::function<bool(const Request&)> swallow;
  // May change an answer.
  std::function<void(const Request&, Reply&)> tamper;
  base::Duration latency = base::millis(10);  // of each way

  void call(Request request, std::function<void(Reply)> done) override {
    asked.push_back(request);
    loop_.post_after(latency, [this, request = std::move(request), done = std::move(done)] {
      std::optional<base::Code> code;
      if (refuse) code = refuse(request);
      Reply reply = code ? Reply(base::error(*code, "refused by the test")) : answer(request);
      if (tamper) tamper(request, reply);
      if (swallow && swallow(request)) return;
      loop_.post_after(latency, [done, reply] { done(reply); });
    });
  }
  std::unique_ptr<base::Subscription> watch(Request, std::function<void(WatchEvent)>,
                                            std::function<void(base::Status)>) override {
    return nullptr;
  }

  // As if by somebody else.
  void write(json::Value object) {
    object.ref("metadata", "resourceVersion") = std::to_string(++version_);
    if (object.get("metadata", "uid").as_string().empty()) {
      object.ref("metadata", "uid") = "uid-" + std::to_string(version_);
    }
    lease = std::move(object);
  }
  void set(std::string_view field, json::Value value) {
    json::Value changed = lease.value_or(json::Value::object(
        {{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", json::Value::object({{"name", "l"}, {"namespace", "ns"}})}}));
    changed.ref("spec").set(field, std::move(value));
    write(changed);
  }
  LeaseRecord record() const { return read_lease(Object(lease.value_or(json::Value()))); }
  size_t count(Verb verb) const {
    size_t out = 0;
    for (const Request& request : asked) out += request.verb == verb ? 1 : 0;
    return out;
  }

 private:
  Reply answer(const Request& request) {
    if (request.verb == Verb::kCreate) {
      if (lease) return base::error(base::Code::kAlreadyExists, "leases \"l\" already exists");
      write(request.body);
      return *lease;
    }
    if (!lease) return base::error(base::Code::kNotFound, "leases \"l\" not found");
    if (request.verb == Verb::kUpdate) {
      const Object before(*lease);
      const Object wanted(request.body);
      if (wanted.resource_version() != before.resource_version() || wanted.uid() != before.uid()) {
        return base::error(base::Code::kConflict, "the object has been modified");
      }
      write(request.body);
    }
    return *lease;
  }

  base::ManualLoop& loop_;
  int64_t version_ = 0;
};

}  // namespace tessera::kube::testing
