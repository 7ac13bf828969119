#include "apiserver/front_logs.h"

#include <gtest/gtest.h>

#include "apiserver/front_auth_fixture.h"

namespace tessera::apiserver {
namespace {

// What a kubelet would be: keeps what it is asked, and answers when it is told to.
struct Kubelet : ContainerLogs {
  void read(LogQuery asked, std::shared_ptr<LogReader> who) override {
    query = std::move(asked);
    reader = std::move(who);
  }
  LogQuery query;
  std::shared_ptr<LogReader> reader;
};

class FrontLogs : public testing::Test {
 protected:
  FrontLogs() : bench_(options()) {
    bench_.must("/api/v1/nodes", R"({"kind":"Node","metadata":{"name":"n"}})");
    pod("p", "n", R"({"name":"c","image":"i"})");
  }
  FrontOptions options() {
    FrontOptions out;
    out.logs = &kubelet_;
    return out;
  }
  void pod(const std::string& name, const std::string& node, const std::string& containers) {
    bench_.must("/api/v1/namespaces/work/pods", R"({"metadata":{"name":")" + name +
                                                    R"("},"spec":{"nodeName":")" + node +
                                                    R"(","containers":[)" + containers + "]}}");
  }
  std::shared_ptr<TestAnswer> ask(const std::string& rest) {
    auto answer = bench_.start("admin", "GET", "/api/v1/namespaces/work/pods/" + rest);
    bench_.settle();
    return answer;
  }

  Kubelet kubelet_;
  FrontBench bench_;
};

TEST_F(FrontLogs, TheKubeletIsAskedForWhatTheClientWants) {
  const auto answer =
      ask("p/log?follow=true&previous=1&timestamps=yes&tailLines=7&limitBytes=9&"
          "sinceTime=2026-01-01T00:00:00.9Z");
  EXPECT_FALSE(answer->answered);
  const LogQuery& query = kubelet_.query;
  EXPECT_EQ(query.ns + "/" + query.pod + "/" + query.container + "/" + query.node, "work/p/c/n");
  EXPECT_TRUE(query.follow && query.previous && query.timestamps);
  EXPECT_EQ(query.tail_lines, 7);
  EXPECT_EQ(query.limit_bytes, 9);
  EXPECT_EQ(base::to_rfc3339(*query.since), "2026-01-01T00:00:00Z");
  ASSERT_NE(kubelet_.reader, nullptr);
  EXPECT_TRUE(kubelet_.reader->write(""));
  EXPECT_TRUE(answer->streaming) << "that there is a log is told before its first line";
  EXPECT_EQ(answer->status, 200);
  kubelet_.reader->end();
}

TEST_F(FrontLogs, WhatTheKubeletRefusesIsAStatus) {
  const auto answer = ask("p/log");
  kubelet_.reader->fail({base::Code::kBadRequest, "container \"c\" in pod \"p\" is waiting", {}});
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->message(), "container \"c\" in pod \"p\" is waiting");
}

TEST_F(FrontLogs, RefusalsComeBeforeAnyKubelet) {
  pod("two", "n", R"({"name":"a","image":"i"},{"name":"b","image":"i"})");
  pod("lost", "gone", R"({"name":"c","image":"i"})");
  pod("waits", "", R"({"name":"c","image":"i"})");
  EXPECT_EQ(ask("two/log")->message(),
            "a container name must be specified for pod two, choose one of: [a b]");
  EXPECT_EQ(ask("p/log?container=x")->message(), "container x is not valid for pod p");
  EXPECT_EQ(ask("lost/log")->message(), "pods \"gone\" not found");
  EXPECT_EQ(ask("none/log")->message(), "pods \"none\" not found");
  EXPECT_EQ(ask("waits/log")->status, 204);
  EXPECT_EQ(ask("none/log?tailLines=-1")->message(),
            "PodLogOptions \"none\" is invalid: tailLines: Invalid value: -1: must be greater than "
            "or equal to 0");
  EXPECT_EQ(ask("p/log?limitBytes=99999999999999999999")->status, 400);
  EXPECT_EQ(kubelet_.reader, nullptr);
  EXPECT_EQ(ask("p/exec?container=c&command=sh")->message(),
            "simulated pods have no place to run a command: no container of pod p runs anywhere");
  EXPECT_EQ(ask("p/portforward")->status, 400);
  EXPECT_EQ(ask("waits/attach")->message(), "pod waits does not have a host assigned");
}

TEST_F(FrontLogs, WithoutKubeletsThereAreNoLogs) {
  FrontBench bare;
  bare.must("/api/v1/nodes", R"({"kind":"Node","metadata":{"name":"n"}})");
  bare.must(
      "/api/v1/namespaces/work/pods",
      R"({"metadata":{"name":"p"},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}})");
  const auto answer = bare.get("admin", "/api/v1/namespaces/work/pods/p/log");
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(answer->message(),
            "no kubelet answers on node n: no simulated nodes run in this server");
}

TEST_F(FrontLogs, AreForThoseWhoMayReadThem) {
  const auto answer = bench_.get("jane", "/api/v1/namespaces/work/pods/p/log");
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(answer->message(),
            "pods \"p\" is forbidden: User \"jane\" cannot get resource \"pods/log\" in API group "
            "\"\" in the namespace \"work\"");
}

}  // namespace
}  // namespace tessera::apiserver
