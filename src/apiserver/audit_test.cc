#include "apiserver/audit.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "apiserver/flow.h"
#include "apiserver/front_auth_fixture.h"
#include "base/file.h"

namespace tessera::apiserver {
namespace {

using json::Value;

std::vector<Value> events_in(const std::string& path) {
  std::vector<Value> out;
  const std::string text = base::read_file(path).value_or("");
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    out.push_back(json::parse(std::string_view(text).substr(at, end - at)).value_or(Value()));
    at = end + 1;
  }
  return out;
}

class AuditTest : public testing::Test {
 protected:
  AuditLog::Options options() {
    AuditLog::Options out;
    out.path = dir_.path() + "/audit.log";
    out.executor = &loop_;
    out.clock = &clock_;
    return out;
  }
  base::TempDir dir_;
  base::ManualClock clock_;
  base::ManualLoop loop_;
};

TEST_F(AuditTest, EveryAnswerIsToldWithoutBodiesOrTokens) {
  auto log = AuditLog::open(options());
  ASSERT_TRUE(log) << log.error().message;
  {
    FrontBench bench({.audit = log->get()});
    bench.send("admin", "POST", "/api/v1/namespaces/work/secrets",
               R"({"kind":"Secret","metadata":{"name":"s"},"stringData":{"k":"hush"}})",
               {{"user-agent", "test/1"}, {"x-forwarded-for", "203.0.113.9"}});
    bench.get("jane", "/api/v1/namespaces/work/secrets/s");
    bench.get("admin", "/api/v1/namespaces/work/pods", {{"impersonate-user", "bob"}});
    bench.get("not-a-token", "/api/v1/pods");
    bench.get("admin", "/api/v1/pods?watch=1");
  }
  loop_.run_ready();
  const std::string text = base::read_file(dir_.path() + "/audit.log").value_or("");
  for (const char* secret : {"hush", "not-a-token", "Bearer", "203.0.113.9"}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  }
  const auto events = events_in(dir_.path() + "/audit.log");
  ASSERT_EQ(events.size(), 8u) << text;
  const Value& made = events[2];
  EXPECT_EQ(made["verb"].as_string(), "create");
  EXPECT_EQ(made["user"]["username"].as_string(), "admin");
  EXPECT_EQ(made["objectRef"].dump(),
            R"({"apiVersion":"v1","namespace":"work","resource":"secrets"})");
  EXPECT_EQ(made["responseStatus"]["code"].as_int(), 201);
  EXPECT_EQ(made["annotations"]["authorization.k8s.io/decision"].as_string(), "allow");
  EXPECT_EQ(made["sourceIPs"].dump(), R"(["192.0.2.7"])");
  EXPECT_EQ(made["userAgent"].as_string(), "test/1");
  EXPECT_EQ(made["stage"].as_string(), "ResponseComplete");
  EXPECT_EQ(events[3]["annotations"]["authorization.k8s.io/decision"].as_string(), "forbid");
  EXPECT_EQ(events[3]["responseStatus"]["code"].as_int(), 403);
  EXPECT_EQ(events[4]["impersonatedUser"]["username"].as_string(), "bob");
  EXPECT_EQ(events[5]["responseStatus"]["code"].as_int(), 401);
  EXPECT_EQ(events[6]["stage"].as_string(), "ResponseStarted");
  EXPECT_EQ(events[7]["stage"].as_string(), "ResponseComplete");
  EXPECT_EQ(events[6]["verb"].as_string(), "watch");
  struct stat info{};
  ASSERT_EQ(::stat((dir_.path() + "/audit.log").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

TEST_F(AuditTest, FilesAreKeptToTheirSizeAndNumber) {
  auto small = options();
  small.file_bytes_max = 2000;
  small.files_max = 2;
  auto log = AuditLog::open(small);
  ASSERT_TRUE(log);
  for (int i = 0; i < 40; ++i) {
    auto record = std::make_shared<AuditRecord>();
    record->id = std::to_string(i);
    (*log)->write(record, "ResponseComplete", 200);
  }
  loop_.run_ready();
  std::vector<Value> all;
  for (const char* ending : {".2", ".1", ""}) {
    const std::string path = small.path + ending;
    EXPECT_LE(base::read_file(path)->size(), 2000u);
    for (const Value& event : events_in(path)) all.push_back(event);
  }
  EXPECT_FALSE(base::read_file(small.path + ".3"));
  ASSERT_FALSE(all.empty());
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]["auditID"].as_string(), std::to_string(40 - all.size() + i));
  }
  EXPECT_EQ((*log)->lost(), 0u);
}

TEST_F(AuditTest, WhatTheLogCannotTakeIsCounted) {
  auto narrow = options();
  narrow.waiting_max = 3;
  auto log = AuditLog::open(narrow);
  ASSERT_TRUE(log);
  for (int i = 0; i < 5; ++i) {
    (*log)->write(std::make_shared<AuditRecord>(), "ResponseComplete", 200);
  }
  EXPECT_EQ((*log)->lost(), 2u);
  loop_.run_ready();
  EXPECT_EQ(events_in(narrow.path).size(), 3u);
  auto nowhere = options();
  nowhere.path = dir_.path() + "/none/audit.log";
  EXPECT_FALSE(AuditLog::open(nowhere));
}

TEST_F(AuditTest, AUserWhoSendsTooMuchIsRefusedAndTheOthersAreServed) {
  FlowControl flow({.executor = &loop_, .running_max = 1, .queue_max = 2, .waiting_max = 100});
  FrontBench bench({.flow = &flow});
  const std::string reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
  const std::string body = R"({"apiVersion":"authorization.k8s.io/v1",
    "kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/","verb":"get"}}})";
  std::vector<std::shared_ptr<TestAnswer>> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(bench.start("jane", "POST", reviews, body));
  EXPECT_FALSE(answers[1]->answered);
  EXPECT_EQ(answers[2]->status, 429);
  EXPECT_EQ(answers[2]->header("Retry-After"), "1");
  EXPECT_EQ(answers[3]->status, 429);
  const auto joe = bench.start("joe", "POST", reviews, body);
  EXPECT_FALSE(joe->answered);
  EXPECT_EQ(bench.get("admin", "/api/v1/pods")->status, 200) << "masters do not wait";
  loop_.run_ready();
  bench.settle();
  loop_.run_ready();
  EXPECT_EQ(joe->status, 201);
  EXPECT_EQ(answers[0]->status, 201);
  EXPECT_EQ(answers[1]->status, 201);
}

}  // namespace
}  // namespace tessera::apiserver
