#include "scheduler/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "scheduler/config_lines.h"
#include "scheduler/config_options.h"
#include "scheduler/scheduler.h"
#include "source_dir.h"

namespace tessera::scheduler {
namespace {

using base::Code;
using base::millis;
using base::seconds;
using ::testing::HasSubstr;

constexpr std::string_view kHead = "apiVersion: tessera.dev/v1alpha1\nkind: SchedulerConfig\n";

base::Result<SchedulerConfig> read(std::string_view fields) {
  return parse_config(std::string(kHead) + std::string(fields), "c.yaml");
}
std::string why(std::string_view fields) {
  const auto config = read(fields);
  return config ? "accepted" : config.error().message;
}

TEST(SchedulerConfig, Nothing_said_is_as_the_scheduler_and_the_engine_are_without_it) {
  const auto config = read("");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, SchedulerConfig());
  const queueing::EngineOptions engine = engine_options(*config);
  const queueing::EngineOptions plain;
  EXPECT_EQ(engine.broken_after, plain.broken_after);
  EXPECT_EQ(engine.claim_timeout, plain.claim_timeout);
  EXPECT_EQ(engine.reservations_max, plain.reservations_max);
  EXPECT_EQ(engine.half_life, plain.half_life);
  EXPECT_EQ(engine.patience, plain.patience);
  EXPECT_EQ(engine.scheduler.policy, plain.scheduler.policy);
  const Scheduler::Options driver = scheduler_options(*config);
  const Scheduler::Options before;
  EXPECT_EQ(driver.names, before.names);
  EXPECT_EQ(driver.policy, before.policy);
  EXPECT_EQ(driver.explain_period, before.explain_period);
  EXPECT_EQ(driver.volume_timeout, before.volume_timeout);
  EXPECT_EQ(driver.binds_in_flight_max, before.binds_in_flight_max);
  EXPECT_EQ(driver.shard_key, before.shard_key);
  EXPECT_EQ(driver.shard_value, before.shard_value);
}

TEST(SchedulerConfig, Every_field_is_read) {
  const auto config = read(R"(
schedulerNames: [tessera, default-scheduler]
policy: bestfit
halfLife: 168h
patience: 24h
reservationsMax: 0
brokenAfter: 0s
claimTimeout: 10m
explainPeriod: 30s
volumeTimeout: 1h
bindsInFlightMax: 64
evictions: off
shard: {key: example.com/pool, value: a}
leaderElection:
  enabled: true
  namespace: work
  name: l
  leaseDuration: 60s
  renewDeadline: 40s
  retryPeriod: 5s
)");
  ASSERT_TRUE(config) << config.error().message;
  SchedulerConfig wanted;
  wanted.scheduler_names = {"tessera", "default-scheduler"};
  wanted.policy = core::Policy::kBestFit;
  wanted.half_life = seconds(168 * 3600);
  wanted.patience = seconds(24 * 3600);
  wanted.reservations_max = 0;
  wanted.broken_after = seconds(0);
  wanted.claim_timeout = seconds(600);
  wanted.explain_period = seconds(30);
  wanted.volume_timeout = seconds(3600);
  wanted.binds_in_flight_max = 64;
  wanted.evictions = false;
  wanted.shard = SchedulerConfig::Shard{"example.com/pool", "a"};
  wanted.leader_election = {true, "work", "l", seconds(60), seconds(40), seconds(5)};
  EXPECT_EQ(*config, wanted);
  const queueing::EngineOptions engine = engine_options(*config);
  EXPECT_EQ(engine.scheduler.policy, core::Policy::kBestFit);
  EXPECT_EQ(engine.half_life, seconds(168 * 3600));
  EXPECT_EQ(engine.patience, seconds(24 * 3600));
  EXPECT_EQ(engine.reservations_max, 0);
  EXPECT_EQ(engine.broken_after, seconds(0));
  EXPECT_EQ(engine.claim_timeout, seconds(600));
  const Scheduler::Options driver = scheduler_options(*config);
  EXPECT_EQ(driver.names, wanted.scheduler_names);
  EXPECT_EQ(driver.policy, core::Policy::kBestFit);
  EXPECT_EQ(driver.engine.patience, wanted.patience);
  EXPECT_EQ(driver.explain_period, seconds(30));
  EXPECT_EQ(driver.volume_timeout, seconds(3600));
  EXPECT_EQ(driver.binds_in_flight_max, 64U);
  EXPECT_EQ(driver.shard_key, "example.com/pool");
  EXPECT_EQ(driver.shard_value, "a");
  const auto rest = read("shard: {key: pool, value: \"\"}\n");
  ASSERT_TRUE(rest) << "what has no such label";
  EXPECT_EQ(rest->shard, (SchedulerConfig::Shard{"pool", ""}));
}

TEST(SchedulerConfig, JSON_is_read_too_and_every_policy_has_its_name) {
  EXPECT_TRUE(parse_config(
      R"({"apiVersion":"tessera.dev/v1alpha1","kind":"SchedulerConfig","policy":"fgd"})", "c"));
  for (const core::Policy policy : core::all_policies()) {
    const auto config = read(fmt::format("policy: {}\n", core::name_of(policy)));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->policy, policy);
  }
}

TEST(SchedulerConfig, Says_that_it_is_no_such_document) {
  const auto of = [](std::string_view text) {
    const auto config = parse_config(text, "c.yaml");
    return config ? "accepted" : config.error().message;
  };
  EXPECT_EQ(of(""),
            "c.yaml: is empty; write apiVersion: tessera.dev/v1alpha1 and kind: SchedulerConfig");
  EXPECT_EQ(of("[]"), "c.yaml: must be a mapping with apiVersion and kind");
  EXPECT_EQ(of("text"), "c.yaml: must be a mapping with apiVersion and kind");
  EXPECT_EQ(of("kind: SchedulerConfig\n"),
            "c.yaml: apiVersion is missing; write apiVersion: tessera.dev/v1alpha1");
  EXPECT_EQ(of("apiVersion: tessera.dev/v1alpha1\npolicy: fgd\n"),
            "c.yaml: kind is missing; write kind: SchedulerConfig");
  EXPECT_EQ(of("# of us\napiVersion: v1\nkind: SchedulerConfig\n"),
            "c.yaml: line 2: apiVersion: must be tessera.dev/v1alpha1, not \"v1\"");
  EXPECT_EQ(of("apiVersion: tessera.dev/v1alpha1\nkind: Queue\n"),
            "c.yaml: line 2: kind: must be SchedulerConfig, not \"Queue\"");
  EXPECT_EQ(of("---\n---\n# nothing\n"), of(""));
  EXPECT_EQ(of("null\n"), of(""));
  EXPECT_EQ(of(std::string(kHead) + "---\n" + std::string(kHead)),
            "c.yaml: holds 2 documents; leave one of them");
  EXPECT_THAT(of(std::string(kHead) + "policy: [\n"), HasSubstr("line "));
  EXPECT_THAT(of(std::string(kHead) + "policy: fgd\npolicy: fgd\n"), HasSubstr("line 4"));
  EXPECT_THAT(of(std::string(kHead) + "shard: {key: a, key: b, value: c}\n"), HasSubstr("line 3"));
  EXPECT_THAT(of(std::string(kHead) + "a: \xff\n"), HasSubstr("c.yaml: "));
  EXPECT_THAT(of(std::string(kConfigBytesMax + 1, '#')), HasSubstr("c.yaml: "));
  EXPECT_THAT(of(std::string(5'000, '[')), HasSubstr("c.yaml: "));
  EXPECT_THAT(of("a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\n"
                 "c: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
                 "e: [*d,*d,*d,*d,*d,*d,*d,*d]\n"),
              HasSubstr("c.yaml: "));
}

TEST(SchedulerConfig, Says_where_a_field_is_unknown_or_empty) {
  EXPECT_THAT(why("halflife: 1h\n"),
              HasSubstr("c.yaml: line 3: halflife: no such field; fields are apiVersion, kind, "));
  EXPECT_EQ(why("policy: fgd\npatience:\n"),
            "c.yaml: line 4: patience: has no value; give one or leave the field out");
  EXPECT_EQ(why("shard:\n  # which\n  key: a\n  values: b\n"),
            "c.yaml: line 6: shard.values: no such field; fields are key, value");
  EXPECT_EQ(
      why("leaderElection: {enabled: true, identity: a}\n"),
      "c.yaml: line 3: leaderElection.identity: no such field; fields are enabled, namespace, "
      "name, leaseDuration, renewDeadline, retryPeriod");
  EXPECT_EQ(why("leaderElection: true\n"),
            "c.yaml: line 3: leaderElection: must be a mapping with enabled, namespace, name, "
            "leaseDuration, renewDeadline, retryPeriod, not true");
  EXPECT_EQ(
      why("leaderElection:\n  enabled:\n"),
      "c.yaml: line 4: leaderElection.enabled: has no value; give one or leave the field out");
}

TEST(SchedulerConfig, Shows_odd_keys_on_one_line) {
  EXPECT_THAT(why("\"a\\nb\": 1\n"), HasSubstr("c.yaml: \"a\\nb\": no such field; fields are "));
  EXPECT_THAT(why("\"\": 1\n"), HasSubstr("c.yaml: no such field"));
  EXPECT_LT(why(std::string(5'000, 'k') + ": 1\n").size(), 400U);
}

TEST(SchedulerConfig, Says_what_a_value_has_to_be) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"policy: best\n",
       "policy: must be one of random, dotprod, clustering, packing, bestfit, fgd, not \"best\""},
      {"policy: 3\n",
       "policy: must be one of random, dotprod, clustering, packing, bestfit, fgd, not 3"},
      {"halfLife: 0\n", "halfLife: must be more than 0; leave it out and the past counts nothing"},
      {"halfLife: 0s\n", "halfLife: must be more than 0; leave it out and the past counts nothing"},
      {"halfLife: -5m\n",
       "halfLife: must be more than 0; leave it out and the past counts nothing"},
      {"halfLife: 10ms\n", "halfLife: must be 1s to 87600h0m0s, not 10ms"},
      {"halfLife: 90000h\n", "halfLife: must be 1s to 87600h0m0s, not 90000h0m0s"},
      {"halfLife: 5\n", "halfLife: must be a duration as 90s, 10m or 1h30m, not 5"},
      {"halfLife: 7d\n", "halfLife: must be a duration as 90s, 10m or 1h30m, not \"7d\""},
      {"halfLife: [1h]\n", "halfLife: must be a duration as 90s, 10m or 1h30m, not [\"1h\"]"},
      {"patience: 0h\n",
       "patience: must be more than 0; leave it out and no gang is tried before its turn"},
      {"reservationsMax: -1\n", "reservationsMax: must be a whole number from 0 to 1000, not -1"},
      {"reservationsMax: 1.5\n", "reservationsMax: must be a whole number from 0 to 1000, not 1.5"},
      {"reservationsMax: '8'\n",
       "reservationsMax: must be a whole number from 0 to 1000, not \"8\""},
      {"reservationsMax: 99999999999999999999\n",
       "reservationsMax: must be a whole number from 0 to 1000, not 100000000000000000000"},
      {"brokenAfter: -1s\n", "brokenAfter: must be 0s to 24h0m0s, not -1s"},
      {"claimTimeout: 0s\n", "claimTimeout: must be 1s to 24h0m0s, not 0s"},
      {"explainPeriod: 100ms\n", "explainPeriod: must be 1s to 24h0m0s, not 100ms"},
      {"volumeTimeout: 25h\n", "volumeTimeout: must be 1s to 24h0m0s, not 25h0m0s"},
      {"bindsInFlightMax: 0\n", "bindsInFlightMax: must be a whole number from 1 to 100000, not 0"},
      {"evictions: 'off'\n", "evictions: must be true or false, not \"off\""},
      {"evictions: 1\n", "evictions: must be true or false, not 1"},
  };
  for (const auto& [fields, message] : cases) {
    EXPECT_EQ(why(fields), "c.yaml: line 3: " + std::string(message));
  }
}

TEST(SchedulerConfig, Says_what_a_name_has_to_be) {
  EXPECT_EQ(why("schedulerNames: []\n"),
            "c.yaml: line 3: schedulerNames: must list names of schedulers, as [tessera], not []");
  EXPECT_EQ(why("schedulerNames: tessera\n"),
            "c.yaml: line 3: schedulerNames: must list names of schedulers, as [tessera], not "
            "\"tessera\"");
  EXPECT_EQ(why("schedulerNames: [1]\n"), "c.yaml: line 3: schedulerNames: 1 is no name; quote it");
  EXPECT_EQ(why("schedulerNames: [a, b, a]\n"),
            "c.yaml: line 3: schedulerNames: \"a\" stands twice; leave one out");
  EXPECT_THAT(
      why("schedulerNames: [A b]\n"),
      HasSubstr("c.yaml: line 3: schedulerNames: \"A b\" is no name here: a lowercase RFC"));
  EXPECT_EQ(why("shard: {key: pool}\n"),
            "c.yaml: line 3: shard: value is missing; a shard is a label of nodes, as {key: pool, "
            "value: a}");
  EXPECT_EQ(why("shard: {key: '', value: a}\n"),
            "c.yaml: line 3: shard.key: must be a name, not \"\"");
  EXPECT_THAT(why("shard: {key: a/b/c, value: a}\n"), HasSubstr("shard.key: \"a/b/c\" is no name"));
  EXPECT_THAT(why("shard: {key: a, value: a b}\n"), HasSubstr("shard.value: \"a b\" is no name"));
  EXPECT_EQ(why("shard: {key: a, value: 7}\n"),
            "c.yaml: line 3: shard.value: must be a name, not 7");
  EXPECT_THAT(why("leaderElection: {namespace: a.b}\n"),
              HasSubstr("leaderElection.namespace: \"a.b\" is no name here: "));
  std::string many = "schedulerNames: [";
  for (int i = 0; i < 65; ++i) many += fmt::format("n{},", i);
  EXPECT_EQ(why(many + "]\n"), "c.yaml: line 3: schedulerNames: must be at most 64 names");
  const std::string text = why("policy: " + std::string(500, 'x') + "\n");
  EXPECT_LT(text.size(), 250U) << "a long value is cut";
  std::string letters;
  for (int i = 0; i < 100; ++i) letters += "\xc3\xa4";
  EXPECT_THAT(why("policy: " + letters + "\n"), HasSubstr("\xc3\xa4..."));
}

TEST(SchedulerConfig, Holds_the_times_of_an_election_together) {
  EXPECT_EQ(why("leaderElection: {leaseDuration: 10s}\n"),
            "c.yaml: line 3: leaderElection: renewDeadline 10s must be at least 1s below "
            "leaseDuration 10s");
  EXPECT_EQ(why("leaderElection: {retryPeriod: 9.5s}\n"),
            "c.yaml: line 3: leaderElection: retryPeriod 9.5s must be at least 1s below "
            "renewDeadline 10s");
  EXPECT_EQ(why("leaderElection: {leaseDuration: 15500ms}\n"),
            "c.yaml: line 3: leaderElection.leaseDuration: must be whole seconds, not 15.5s");
  EXPECT_EQ(why("leaderElection: {retryPeriod: 0s}\n"),
            "c.yaml: line 3: leaderElection.retryPeriod: must be 100ms to 1h0m0s, not 0s");
  // Whatever is accepted is what an election accepts.
  size_t accepted = 0;
  for (int lease = 1; lease <= 20; ++lease) {
    for (int renew = 1; renew <= 20; ++renew) {
      for (int retry = 1; retry <= 20; ++retry) {
        const auto config =
            read(fmt::format("leaderElection: {{leaseDuration: {}s, renewDeadline: {}s, "
                             "retryPeriod: {}s}}\n",
                             lease, renew, retry));
        if (!config) continue;
        ++accepted;
        const base::Status status = kube::validate(leader_options(*config, "me"));
        EXPECT_TRUE(status) << status.error().message;
      }
    }
  }
  EXPECT_GT(accepted, 500U);
  const auto standard = leader_options(SchedulerConfig(), "me");
  EXPECT_EQ(standard.request_timeout, kube::LeaderElection::Options().request_timeout);
  EXPECT_EQ(standard.lease_duration, kube::LeaderElection::Options().lease_duration);
  EXPECT_EQ(standard.renew_deadline, kube::LeaderElection::Options().renew_deadline);
  EXPECT_EQ(standard.retry_period, kube::LeaderElection::Options().retry_period);
}

TEST(SchedulerConfig, Some_fields_need_a_restart) {
  const SchedulerConfig now;
  SchedulerConfig next = now;
  next.policy = core::Policy::kRandom;
  next.half_life = seconds(1);
  next.patience = seconds(1);
  next.reservations_max = 1;
  next.broken_after = next.claim_timeout = next.explain_period = next.volume_timeout = seconds(7);
  next.binds_in_flight_max = 1;
  next.evictions = false;
  EXPECT_TRUE(can_change(now, next));
  next.shard = SchedulerConfig::Shard{"a", "b"};
  next.leader_election.enabled = false;
  const base::Status refused = can_change(now, next);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid);
  EXPECT_EQ(refused.error().message,
            "shard, leaderElection cannot change while the scheduler runs; restart it, or take the "
            "change back");
  next = now;
  next.scheduler_names.emplace_back("b");
  EXPECT_THAT(can_change(now, next).error().message, HasSubstr("schedulerNames cannot change"));
}

TEST(SchedulerConfig, The_sample_says_the_defaults_and_shows_what_is_off) {
  const auto sample = base::read_file(TESSERA_SOURCE_DIR "/config/samples/scheduler_config.yaml");
  ASSERT_TRUE(sample) << sample.error().message;
  const auto config = parse_config(*sample, "sample");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(*config, SchedulerConfig());
  std::string all = *sample;
  for (const std::string_view field : {"halfLife", "patience", "shard", "namespace"}) {
    const size_t at = all.find(fmt::format("# {}: ", field));
    ASSERT_NE(at, std::string::npos) << field;
    all.erase(at, 2);
  }
  const auto full = parse_config(all, "sample");
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_TRUE(full->half_life && full->patience && full->shard);
  EXPECT_EQ(full->leader_election.ns, "tessera-system");
}

TEST(ConfigLines, Find_fields_in_block_and_flow_style) {
  constexpr std::string_view kText =
      "# a: comment\r\n"
      "a: 1\r\n"
      "\n"
      "'b' : {x: 1, \"y\": 2}  # z: 3\n"
      "c:\n"
      "# y: not this\n"
      "  x: {y: 1}\n"
      "\n"
      "  y: 2\n"
      "d: {\n"
      "  y: 1\n"
      "}\n";
  EXPECT_EQ(line_of(kText, "a"), 2);
  EXPECT_EQ(line_of(kText, "b"), 4);
  EXPECT_EQ(line_of(kText, "b.y"), 4);
  EXPECT_EQ(line_of(kText, "b.z"), 4) << "at least the outer field's";
  EXPECT_EQ(line_of(kText, "c.x"), 7);
  EXPECT_EQ(line_of(kText, "d.y"), 11);
  EXPECT_EQ(line_of(kText, "e"), 0);
  EXPECT_EQ(line_of(kText, ""), 0);
  EXPECT_EQ(line_of("", "a"), 0);
  EXPECT_EQ(line_of("{\"a\": 1}", "a"), 0);
}

}  // namespace
}  // namespace tessera::scheduler
