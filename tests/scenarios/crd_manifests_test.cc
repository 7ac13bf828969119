// The definitions of config/crd on the embedded API: they are taken, and they hold objects to what the scheduler reads.

#include <gmock/gmock.h>

#include "base/file.h"
#include "scheduler/queue_objects.h"
#include "sim/lab_testing.h"
#include "source_dir.h"

namespace tessera::sim {
namespace {

using ::testing::HasSubstr;

constexpr const char* kFleet = "name: lab\nracks: [{name: r1, nodes: [{name: a}]}]";

class CrdManifests : public ::testing::Test {
 protected:
  CrdManifests() {
    for (const char* file : {"queue.yaml", "reservation.yaml"}) {
      auto text = base::read_file(std::string(TESSERA_SOURCE_DIR "/config/crd/") + file);
      EXPECT_TRUE(text) << file;
      auto root = json::parse_yaml(*text);
      EXPECT_TRUE(root) << root.error().message;
      const auto made = create({"apiextensions.k8s.io", "v1", "customresourcedefinitions"}, *root);
      EXPECT_TRUE(made) << file << ": " << made.error().message;
      lab.advance(base::seconds(1));
    }
  }
  kube::Reply create(kube::Gvr gvr, const json::Value& body) {
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.gvr = std::move(gvr);
    request.body = body;
    request.query = {{"fieldValidation", "Strict"}};
    return lab.call(std::move(request));
  }
  kube::Reply make(std::string_view kind, const char* plural, std::string_view spec) {
    auto object = json::parse_yaml(fmt::format(
        "{{apiVersion: tessera.dev/v1alpha1, kind: {}, metadata: {{name: o{}}}, spec: {}}}", kind,
        ++made_, spec));
    EXPECT_TRUE(object) << object.error().message;
    return create({"tessera.dev", "v1alpha1", plural}, *object);
  }
  kube::Reply queue(std::string_view spec) { return make("Queue", "queues", spec); }
  kube::Reply reservation(std::string_view spec) {
    return make("Reservation", "reservations", spec);
  }

  Lab lab{kFleet};
  int made_ = 0;
};

TEST_F(CrdManifests, A_queue_is_taken_with_defaults_that_the_scheduler_reads) {
  const auto made = queue(R"(
{parent: top, quota: {gpu: 4, cpu: 500m, nvidia.com/mig-1g.10gb: 7, gpu/H100: "2.5"}, limit: {memory: 64Gi},
 strictFifo: true, minRuntime: 10m, defaultRuntime: 1h30m}
)");
  ASSERT_TRUE(made) << made.error().message;
  const json::Value& spec = (*made)["spec"];
  EXPECT_EQ(spec["weight"].as_int(), 1);
  EXPECT_EQ(spec["priority"].as_int(), 100);
  EXPECT_EQ(spec["reservations"].as_int(), 1);
  EXPECT_TRUE(spec["reclaimable"].as_bool());
  scheduler::queueing::Dims dims;
  const auto read = scheduler::read_queue_object(kube::Object(*made), dims, {});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->problem, "");
  EXPECT_EQ(read->spec.quota.at(scheduler::queueing::kGpu), 35000);
  EXPECT_EQ(read->spec.runtime_default, base::seconds(5400));
}

TEST_F(CrdManifests, A_queue_that_makes_no_sense_is_refused_with_the_field) {
  struct Case {
    const char* spec;
    const char* field;
  };
  for (const Case& c :
       {Case{"{weight: -1}", "spec.weight"}, Case{"{weight: 1000001}", "spec.weight"},
        Case{"{quota: {gpu: \"-1\"}}", "spec.quota"}, Case{"{quota: {gpu: -1}}", "spec.quota"},
        Case{"{limit: {gpu: many}}", "spec.limit"}, Case{"{minRuntime: soon}", "spec.minRuntime"},
        Case{"{closed: maybe}", "spec.closed"}, Case{"{shares: 3}", "spec.shares"}}) {
    const auto made = queue(c.spec);
    ASSERT_FALSE(made) << c.spec;
    EXPECT_THAT(made.error().message, HasSubstr(c.field));
  }
}

TEST_F(CrdManifests, A_reservation_names_queue_amount_and_span) {
  const auto made =
      reservation("{queue: q, resources: {gpu: 16}, start: '2026-12-01T08:00:00Z', duration: 2h}");
  ASSERT_TRUE(made) << made.error().message;
  for (const char* spec :
       {"{queue: q, resources: {gpu: 16}, duration: 2h}",
        "{queue: q, resources: {}, start: '2026-12-01T08:00:00Z', duration: 2h}",
        "{queue: q, resources: {gpu: 1}, start: tomorrow, duration: 2h}",
        "{queue: '', resources: {gpu: 1}, start: '2026-12-01T08:00:00Z', duration: 2h}"}) {
    EXPECT_FALSE(reservation(spec)) << spec;
  }
}

}  // namespace
}  // namespace tessera::sim
