#include "sim/container_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/lab_testing.h"

namespace tessera::sim {
namespace {

using base::Time;
using ::testing::HasSubstr;

constexpr Time kStart{1'767'225'600'000'000'000};  // 2026-01-01T00:00:00Z

Time after(int64_t seconds) {
  return kStart + base::seconds(seconds);
}

ContainerLog log_of(std::optional<int64_t> run_for, std::optional<int64_t> ended, int code = 0) {
  ContainerLife life;
  life.what = "begin";
  life.started = kStart;
  if (ended) life.ended = after(*ended);
  life.exit_code = code;
  if (run_for) life.run_for = base::seconds(*run_for);
  return ContainerLog(life);
}

std::string all_of(const ContainerLog& log, Time now, apiserver::LogQuery query = {}) {
  return LogCursor(log, query, now).take(log, now);
}

TEST(ContainerLog, TellsStartStepsAndEnd) {
  const ContainerLog log = log_of(30, 30, 3);
  EXPECT_EQ(all_of(log, after(-1)), "");
  EXPECT_EQ(all_of(log, after(7)), "begin\nstep 1 of 10, 3s\nstep 2 of 10, 6s\n");
  const std::string whole = all_of(log, after(31));
  EXPECT_THAT(whole, HasSubstr("step 10 of 10, 30s\nended after 30s with exit code 3\n"));
  EXPECT_EQ(all_of(log, after(99'999)), whole);
  EXPECT_THAT(all_of(log_of({}, 25, 143), after(30)),
              HasSubstr("step 2, 20s\nended by SIGTERM after 25s with exit code 143\n"));
  EXPECT_THAT(all_of(log_of(30, 5, 137), after(30)),
              HasSubstr("step 1 of 10, 3s\nkilled after 5s with exit code 137\n"));
}

TEST(ContainerLog, TailComesBeforeSinceAndTheLimitCountsTimeStamps) {
  const ContainerLog log = log_of(30, 30);
  apiserver::LogQuery query;
  query.tail_lines = 2;
  EXPECT_EQ(all_of(log, after(40), query),
            "step 10 of 10, 30s\nended after 30s with exit code 0\n");
  query.tail_lines = 0;
  EXPECT_EQ(all_of(log, after(40), query), "");
  query.tail_lines = 3;
  query.since = after(30);
  query.timestamps = true;
  EXPECT_EQ(all_of(log, after(40), query),
            "2026-01-01T00:00:30.000000000Z step 10 of 10, 30s\n"
            "2026-01-01T00:00:30.000000000Z ended after 30s with exit code 0\n");
  query.limit_bytes = 35;
  EXPECT_EQ(all_of(log, after(40), query), "2026-01-01T00:00:30.000000000Z step");
  query.limit_bytes = 1;
  EXPECT_EQ(all_of(log, after(40), query), "2");
}

TEST(ContainerLog, OnlyTheNewestLinesOfALongLifeAreKept) {
  const std::string text = all_of(log_of({}, {}), after(10'000'000));
  EXPECT_EQ(std::ranges::count(text, '\n'), 10'000);
  EXPECT_TRUE(text.ends_with("step 1000000, 2777h46m40s\n")) << text.substr(text.size() - 60);
}

struct Collected : apiserver::LogReader {
  void fail(base::Error error) override { failed = error.message; }
  bool write(std::string piece) override {
    text += piece;
    return !gone;
  }
  void end() override { ended = true; }
  std::string text;
  std::string failed;
  bool ended = false;
  bool gone = false;
};

class KubeletLogs : public testing::Test {
 protected:
  std::shared_ptr<Collected> read(const std::string& pod, const std::string& container,
                                  apiserver::LogQuery query = {}) {
    const kube::Object object = lab_.pod(pod);
    query.ns = "default";
    query.pod = pod;
    query.uid = object.uid();
    query.node = object.get("spec", "nodeName").str();
    query.container = container;
    auto reader = std::make_shared<Collected>();
    lab_.kubelets().read(query, reader);
    lab_.loop().run_ready();
    return reader;
  }
  void start(const std::string& name, const std::string& annotations,
             const std::string& more = "") {
    lab_.apply("{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", annotations: {" +
               annotations + "}}, spec: {" + more + "containers: [{name: main, image: i}]}}");
  }
  Lab lab_{default_fleet(2)};
};

TEST_F(KubeletLogs, AFollowerGetsEachLineInItsTimeAndTheEnd) {
  start("a", "tessera.dev/run-for: 20s, tessera.dev/exit-code: '3'", "restartPolicy: Never, ");
  lab_.advance(base::seconds(5));
  apiserver::LogQuery follow;
  follow.follow = true;
  const auto reader = read("a", "main", follow);
  EXPECT_THAT(reader->text, HasSubstr("simulated container main of pod default/a started on node"));
  EXPECT_THAT(reader->text, HasSubstr("step 2 of 10, 4s\n"));
  EXPECT_FALSE(reader->ended);
  lab_.advance(base::seconds(3));
  EXPECT_THAT(reader->text, HasSubstr("step 3 of 10, 6s\n"));
  lab_.advance(base::seconds(20));
  EXPECT_TRUE(reader->ended);
  EXPECT_THAT(reader->text, HasSubstr("with exit code 3\n"));
  EXPECT_EQ(read("a", "main")->text, reader->text) << "the same whenever it is asked for";
}

TEST_F(KubeletLogs, AFollowerEndsWithItsPodAndMayGoBefore) {
  start("a", "");
  start("b", "");
  lab_.advance(base::seconds(5));
  apiserver::LogQuery follow;
  follow.follow = true;
  const auto one = read("a", "main", follow);
  const auto two = read("b", "main", follow);
  two->gone = true;
  EXPECT_TRUE(lab_.remove("Pod", "a", json::Value::object({{"gracePeriodSeconds", 0}})));
  EXPECT_TRUE(lab_.remove("Pod", "b"));
  lab_.advance(base::seconds(60));
  EXPECT_TRUE(one->ended);
  EXPECT_FALSE(two->ended);
}

TEST_F(KubeletLogs, TheRunBeforeIsThereWhileTheNextOneWaits) {
  start("a", "tessera.dev/run-for: 2s, tessera.dev/exit-code: '1'");
  lab_.advance(base::seconds(1));
  apiserver::LogQuery before;
  before.previous = true;
  EXPECT_EQ(read("a", "main", before)->failed,
            "previous terminated container \"main\" in pod \"a\" not found");
  lab_.advance(base::seconds(4));  // in its back-off
  const std::string last = read("a", "main")->text;
  EXPECT_THAT(last, HasSubstr("ended after 2s with exit code 1\n"));
  EXPECT_EQ(read("a", "main", before)->text, last);
  lab_.advance(base::seconds(9));
  EXPECT_NE(read("a", "main")->text, last);
  EXPECT_EQ(read("a", "main", before)->text, last);
}

TEST_F(KubeletLogs, WhatHasNotBegunAndNodesThatAreAwayHaveNoLog) {
  start("a", "tessera.dev/init-run-for: 30s", "initContainers: [{name: first, image: i}], ");
  lab_.advance(base::seconds(5));
  EXPECT_EQ(read("a", "main")->failed,
            "container \"main\" in pod \"a\" is waiting to start: PodInitializing");
  EXPECT_THAT(read("a", "first")->text, HasSubstr("step 1 of 10, 3s\n"));
  lab_.kubelets().fail_node(lab_.node_of("a"));
  EXPECT_EQ(read("a", "first")->failed, "no kubelet answers on node " + lab_.node_of("a"));
}

}  // namespace
}  // namespace tessera::sim
