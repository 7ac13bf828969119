#include "apiserver/front.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/api_fixture.h"
#include "apiserver/front_accept.h"
#include "apiserver/front_auth.h"
#include "apiserver/front_event_bytes.h"
#include "apiserver/routes_test_kinds.h"
#include "apiserver/status_body.h"
#include "base/check.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

// What an HTTP peer would have seen.
class Recorder : public http::Responder {
 public:
  void send(http::Response response) override {
    EXPECT_FALSE(answered) << "answered twice";
    answered = true;
    answer = std::move(response);
  }
  void begin_stream(int status, std::string type, http::Headers headers) override {
    EXPECT_FALSE(answered);
    answered = streaming = true;
    answer.status = status;
    answer.content_type = std::move(type);
    answer.headers = std::move(headers);
  }
  bool write(std::string chunk) override {
    if (closed) return false;
    stream += chunk;
    return true;
  }
  void end_stream() override { ended = true; }
  void on_closed(std::function<void()> callback) override {
    callbacks.push_back(std::move(callback));
  }
  void close() {
    closed = true;
    for (auto& callback : callbacks) callback();
  }

  std::string header(std::string_view name) const {
    for (const auto& [key, value] : answer.headers) {
      if (key == name) return value;
    }
    return {};
  }
  Value json() const { return json::parse(answer.body).value_or(Value()); }
  // The events of the stream so far.
  std::vector<Value> events() const {
    std::vector<Value> out;
    for (size_t at = 0; at < stream.size();) {
      const size_t end = stream.find('\n', at);
      out.push_back(json::parse(std::string_view(stream).substr(at, end - at)).value_or(Value()));
      at = end + 1;
    }
    return out;
  }

  bool answered = false;
  bool streaming = false;
  bool ended = false;
  bool closed = false;
  http::Response answer;
  std::string stream;
  std::vector<std::function<void()>> callbacks;
};

constexpr std::string_view kTable =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,"
    "application/json";

class FrontTest : public testing::Test {
 protected:
  FrontTest() {
    Api::Options options;
    options.clock = &clock_;
    options.executor = &loop_;
    auto opened = Api::open(std::move(options));
    TS_CHECK(opened.has_value());
    api_ = std::move(*opened);
    FrontOptions front;
    front.tokens = {{"admin-token", {"admin", {"system:masters"}, ""}},
                    {"plain-token", {"jane", {}, ""}}};
    front_ = std::make_unique<Front>(*api_, std::move(front));
    loop_.run_ready();
    const auto created =
        send("POST", "/api/v1/namespaces", R"({"kind":"Namespace","metadata":{"name":"work"}})");
    EXPECT_EQ(created->answer.status, 201) << created->answer.body;
  }

  struct Extra {
    std::string_view accept;
    std::string_view content_type = "application/json";
    std::string_view token = "admin-token";
    http::Headers headers;
  };

  std::shared_ptr<Recorder> send(std::string_view method, std::string_view target, std::string body,
                                 Extra extra) {
    http::Request request;
    request.method = method;
    request.target = target;
    request.body = std::move(body);
    request.headers = std::move(extra.headers);
    if (!extra.accept.empty()) request.headers.emplace_back("accept", extra.accept);
    if (!request.body.empty()) request.headers.emplace_back("content-type", extra.content_type);
    if (!extra.token.empty()) {
      request.headers.emplace_back("authorization", "Bearer " + std::string(extra.token));
    }
    auto recorder = std::make_shared<Recorder>();
    front_->handle(std::move(request), recorder);
    loop_.run_ready();
    EXPECT_TRUE(recorder->answered) << method << " " << target;
    return recorder;
  }
  std::shared_ptr<Recorder> send(std::string_view method, std::string_view target,
                                 std::string body = {}) {
    return send(method, target, std::move(body), Extra{});
  }

  std::shared_ptr<Recorder> create_config_map(std::string_view name) {
    return send(
        "POST", "/api/v1/namespaces/work/configmaps",
        fmt::format(R"({{"kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"a":"1"}}}})",
                    name));
  }

  base::ManualClock clock_;
  base::ManualLoop loop_;
  std::unique_ptr<Api> api_;
  std::unique_ptr<Front> front_;
};

TEST_F(FrontTest, ObjectIsCreatedReadChangedAndDeleted) {
  const auto created = create_config_map("c");
  EXPECT_EQ(created->answer.status, 201);
  EXPECT_FALSE(created->header("Audit-Id").empty());
  const auto read = send("GET", "/api/v1/namespaces/work/configmaps/c");
  EXPECT_EQ(read->answer.status, 200);
  EXPECT_EQ(read->json()["kind"].as_string(), "ConfigMap");
  EXPECT_EQ(read->json()["data"].dump(), R"({"a":"1"})");
  const auto patched =
      send("PATCH", "/api/v1/namespaces/work/configmaps/c", R"({"data":{"b":"2"}})",
           {.content_type = "application/merge-patch+json"});
  EXPECT_EQ(patched->json()["data"].dump(), R"({"a":"1","b":"2"})");
  EXPECT_EQ(send("DELETE", "/api/v1/namespaces/work/configmaps/c")->answer.status, 200);
  EXPECT_EQ(send("GET", "/api/v1/namespaces/work/configmaps/c")->answer.status, 404);
}

TEST_F(FrontTest, RefusalsAreStatusObjectsInKubernetesWords) {
  create_config_map("c");
  struct {
    std::string_view method, target;
    std::string body;
    int code;
    std::string_view reason, message;
  } const cases[] = {
      {"GET", "/api/v1/namespaces/work/configmaps/x", "", 404, "NotFound",
       "configmaps \"x\" not found"},
      {"POST", "/api/v1/namespaces/work/configmaps",
       R"({"kind":"ConfigMap","metadata":{"name":"c"}})", 409, "AlreadyExists",
       "configmaps \"c\" already exists"},
      {"GET", "/api/v1/widgets", "", 404, "NotFound",
       "the server could not find the requested resource"},
      {"POST", "/api", "{}", 405, "MethodNotAllowed",
       "the server does not allow this method on the requested resource"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(fmt::format("{} {}", c.method, c.target));
    const auto got = send(c.method, c.target, c.body);
    EXPECT_EQ(got->answer.status, c.code);
    const Value status = got->json();
    EXPECT_EQ(status["kind"].as_string(), "Status");
    EXPECT_EQ(status["status"].as_string(), "Failure");
    EXPECT_EQ(status["reason"].as_string(), c.reason);
    EXPECT_EQ(status["message"].as_string(), c.message);
    EXPECT_EQ(status["code"].as_int(), c.code);
  }
  const Value details = send("GET", "/api/v1/namespaces/work/configmaps/x")->json()["details"];
  EXPECT_EQ(details.dump(), R"({"kind":"configmaps","name":"x"})");
  for (const std::string_view target : {"/api/v1/%zz", "/%00", "nopath"}) {
    const auto got = send("GET", target);
    EXPECT_EQ(got->answer.status, 400) << target;
    EXPECT_EQ(got->answer.body.substr(0, 17), "400 Bad Request: ");
  }
}

TEST_F(FrontTest, WhereNoApiBeginsThereIsPlainText) {
  for (const std::string_view target : {"/nothing", "/nothing/here", "/apis/none.example.com"}) {
    const auto got = send("GET", target);
    EXPECT_EQ(got->answer.status, 404) << target;
    EXPECT_EQ(got->answer.body, "404 page not found\n") << target;
  }
  EXPECT_EQ(send("GET", "/apis/apps/v9")->json()["kind"].as_string(), "Status");
}

TEST_F(FrontTest, RowsCarryOnlyWhatTheyCan) {
  const auto got = send("GET", "/api/v1/namespaces/work/configmaps?includeObject=Other", "",
                        {.accept = "application/json;as=Table;v=v1;g=meta.k8s.io"});
  EXPECT_EQ(got->answer.status, 400);
}

TEST_F(FrontTest, InvalidObjectsNameEachCause) {
  const auto got = send("POST", "/api/v1/namespaces/work/configmaps",
                        R"({"kind":"ConfigMap","metadata":{"name":"Not A Name"}})");
  EXPECT_EQ(got->answer.status, 422);
  EXPECT_EQ(got->json()["details"]["kind"].as_string(), "ConfigMap");
  EXPECT_EQ(got->json()["details"]["causes"].at(0)["field"].as_string(), "metadata.name");
}

TEST_F(FrontTest, StrictValidationRefusesAndWarnWarns) {
  constexpr std::string_view kBody = R"({"kind":"ConfigMap","metadata":{"name":"w"},"datum":{}})";
  const auto strict =
      send("POST", "/api/v1/namespaces/work/configmaps?fieldValidation=Strict", std::string(kBody));
  EXPECT_EQ(strict->answer.status, 400);
  EXPECT_NE(
      strict->json()["message"].as_string().find("strict decoding error: unknown field \"datum\""),
      std::string_view::npos);
  const auto warn = send("POST", "/api/v1/namespaces/work/configmaps", std::string(kBody));
  EXPECT_EQ(warn->answer.status, 201);
  EXPECT_EQ(warn->header("Warning"), R"(299 - "unknown field \"datum\"")");
}

TEST_F(FrontTest, ListsComeAsTablesYamlOrMetadata) {
  create_config_map("a");
  create_config_map("b");
  constexpr std::string_view kPath = "/api/v1/namespaces/work/configmaps";
  const Value table = send("GET", kPath, "", {.accept = kTable})->json();
  EXPECT_EQ(table["kind"].as_string(), "Table");
  EXPECT_EQ(table["rows"].at(0)["object"]["kind"].as_string(), "PartialObjectMetadata");
  EXPECT_FALSE(table["metadata"]["resourceVersion"].as_string().empty());
  const Value partial =
      send("GET", kPath, "",
           {.accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
          ->json();
  EXPECT_EQ(partial["kind"].as_string(), "PartialObjectMetadataList");
  EXPECT_FALSE(partial["items"].at(0).contains("data"));
  const auto yaml = send("GET", kPath, "", {.accept = "application/yaml"});
  EXPECT_EQ(yaml->answer.content_type, "application/yaml");
  EXPECT_NE(yaml->answer.body.find("kind: ConfigMapList"), std::string::npos);
  const auto wrong = send(
      "GET", kPath, "", {.accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"});
  EXPECT_EQ(wrong->answer.status, 406);
  EXPECT_EQ(
      send("GET", kPath, "", {.accept = "application/vnd.kubernetes.protobuf"})->answer.status,
      406);
  EXPECT_EQ(
      send("GET", kPath, "", {.accept = "application/vnd.kubernetes.protobuf,application/json"})
          ->answer.status,
      200);
}

TEST_F(FrontTest, WatchSendsEventsUntilThePeerGoes) {
  const auto watch = send("GET", "/api/v1/namespaces/work/configmaps?watch=true");
  ASSERT_TRUE(watch->streaming);
  EXPECT_EQ(watch->answer.content_type, "application/json");
  create_config_map("a");
  auto events = watch->events();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back()["type"].as_string(), "ADDED");
  EXPECT_EQ(events.back()["object"].get("metadata", "name").as_string(), "a");
  send("DELETE", "/api/v1/namespaces/work/configmaps/a");
  EXPECT_EQ(watch->events().back()["type"].as_string(), "DELETED");
  watch->close();
  const size_t seen = watch->events().size();
  create_config_map("b");
  EXPECT_EQ(watch->events().size(), seen);
}

TEST_F(FrontTest, WatchedTablesNameColumnsOnce) {
  const auto watch =
      send("GET", "/api/v1/namespaces/work/configmaps?watch=true", "", {.accept = kTable});
  create_config_map("a");
  create_config_map("b");
  std::vector<Value> rows;
  for (const Value& event : watch->events()) {
    EXPECT_EQ(event["object"]["kind"].as_string(), "Table");
    EXPECT_EQ(event["object"]["columnDefinitions"].is_array(), rows.empty());
    rows.push_back(event["object"]["rows"].at(0)["cells"].at(0));
  }
  EXPECT_NE(std::ranges::find(rows, Value("a")), rows.end());
  EXPECT_NE(std::ranges::find(rows, Value("b")), rows.end());
}

TEST_F(FrontTest, WatchEndsAtItsTimeout) {
  const auto watch = send("GET", "/api/v1/pods?watch=true&timeoutSeconds=5");
  ASSERT_TRUE(watch->streaming);
  EXPECT_FALSE(watch->ended);
  clock_.advance(base::seconds(6));
  loop_.advance(base::seconds(6));
  EXPECT_TRUE(watch->ended);
}

TEST_F(FrontTest, WatchWithoutATimeoutEndsBetweenHalfAnHourAndAnHour) {
  const auto watch = send("GET", "/api/v1/pods?watch=true");
  loop_.advance(base::seconds(1799));
  EXPECT_FALSE(watch->ended);
  loop_.advance(base::seconds(1801));
  EXPECT_TRUE(watch->ended);
}

TEST_F(FrontTest, BadWatchIsRefusedBeforeItBegins) {
  EXPECT_EQ(send("GET", "/api/v1/pods?watch=true&labelSelector=%3D%3D")->answer.status, 400);
  EXPECT_EQ(
      send("GET", "/api/v1/pods?watch=true", "", {.accept = "application/yaml"})->answer.status,
      406);
}

TEST_F(FrontTest, DiscoveryAnswersWithEtagsAndInBothForms) {
  const auto plain = send("GET", "/apis");
  EXPECT_EQ(plain->json()["kind"].as_string(), "APIGroupList");
  const auto aggregated =
      send("GET", "/apis", "",
           {.accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
                      "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
                      "application/json"});
  EXPECT_EQ(aggregated->json()["kind"].as_string(), "APIGroupDiscoveryList");
  EXPECT_EQ(aggregated->answer.content_type,
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  const auto again =
      send("GET", "/apis", "", {.headers = {{"if-none-match", plain->header("ETag")}}});
  EXPECT_EQ(again->answer.status, 304);
  EXPECT_TRUE(again->answer.body.empty());
  EXPECT_EQ(send("GET", "/apis/nothing.example")->answer.status, 404);
  EXPECT_EQ(send("GET", "/openapi/v3/apis/apps/v1")->json()["openapi"].as_string(), "3.0.0");
  const std::string old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
  const auto encoded = send("GET", "/openapi/v2", "", {.accept = old});
  EXPECT_EQ(encoded->answer.content_type,
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
  EXPECT_TRUE(
      encoded->answer.body.starts_with("\n\x03"
                                       "2.0"));
  EXPECT_EQ(send("GET", "/openapi/v2")->json()["swagger"].as_string(), "2.0");
  EXPECT_EQ(send("GET", "/openapi/v3", "", {.accept = old})->answer.status, 406);
}

TEST_F(FrontTest, HealthAndVersionNeedNoOne) {
  for (const std::string_view path : {"/healthz", "/livez", "/readyz"}) {
    const auto got = send("GET", path, "", {.token = ""});
    EXPECT_EQ(got->answer.body, "ok") << path;
  }
  EXPECT_EQ(send("GET", "/livez?verbose", "", {.token = ""})->answer.body,
            "[+]ping ok\n[+]store ok\nlivez check passed\n");
  EXPECT_EQ(send("GET", "/readyz?verbose&exclude=store&exclude=etcd")->answer.body,
            "[+]ping ok\n[+]store excluded: ok\n[+]shutdown ok\nwarn: some health checks cannot be "
            "excluded: no matches for \"etcd\"\nreadyz check passed\n");
  EXPECT_EQ(send("GET", "/readyz/store")->answer.body, "ok");
  EXPECT_EQ(send("GET", "/readyz/etcd")->answer.status, 404);
  api_->close();
  EXPECT_EQ(send("GET", "/healthz")->answer.status, 500);
  EXPECT_EQ(send("GET", "/readyz")->answer.body,
            "[+]ping ok\n[-]store failed: reason withheld\n[-]shutdown failed: reason withheld\n"
            "readyz check failed\n");
  EXPECT_EQ(send("GET", "/livez/store")->answer.body,
            "internal server error: the server is shutting down\n");
  EXPECT_EQ(send("GET", "/version", "", {.token = ""})->json()["gitVersion"].as_string(),
            "v1.36.3+tessera");
}

TEST_F(FrontTest, StrangersAre401AndThoseWithoutRightsAre403) {
  for (const std::string_view token : {"", "wrong", "admin-toke", "admin-tokenn"}) {
    const auto got = send("GET", "/api/v1/pods", "", {.token = token});
    EXPECT_EQ(got->answer.status, 401) << token;
    EXPECT_EQ(got->json()["message"].as_string(), "Unauthorized");
  }
  const auto jane = [&](std::string_view method, std::string_view target) {
    return send(method, target, "", {.token = "plain-token"})->json()["message"].str();
  };
  EXPECT_EQ(
      jane("GET", "/api/v1/namespaces/default/pods"),
      "pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the "
      "namespace \"default\"");
  EXPECT_EQ(jane("GET", "/api/v1/nodes/n"),
            "nodes \"n\" is forbidden: User \"jane\" cannot get resource \"nodes\" in API group "
            "\"\" at the "
            "cluster scope");
  EXPECT_EQ(jane("GET", "/apis/apps/v1/deployments?watch=1"),
            "deployments.apps is forbidden: User \"jane\" cannot watch resource \"deployments\" in "
            "API group "
            "\"apps\" at the cluster scope");
  EXPECT_EQ(send("GET", "/api", "", {.token = "plain-token"})->answer.status, 200);
}

TEST_F(FrontTest, MastersMayActAsOthers) {
  const auto got = send("GET", "/api/v1/pods", "", {.headers = {{"impersonate-user", "jane"}}});
  EXPECT_EQ(got->answer.status, 403);
  EXPECT_NE(got->json()["message"].as_string().find("User \"jane\" cannot list"),
            std::string_view::npos);
  const auto group = send("GET", "/api/v1/pods", "",
                          {.headers = {{"impersonate-user", "jane"},
                                       {"impersonate-group", "a"},
                                       {"impersonate-group", "system:masters"}}});
  EXPECT_EQ(group->answer.status, 200);
  const auto jane = send("GET", "/api/v1/pods", "",
                         {.token = "plain-token", .headers = {{"impersonate-user", "admin"}}});
  EXPECT_EQ(jane->answer.status, 403);
}

TEST(Authenticate, CertificateNamesUserAndGroups) {
  http::Request request;
  request.peer_common_name = "kubernetes-admin";
  request.peer_organizations = {"system:masters"};
  TestApi api;
  const auto caller = authenticate(request, api->access(), false);
  ASSERT_TRUE(caller);
  EXPECT_EQ(caller->user, "kubernetes-admin");
  EXPECT_EQ(caller->groups, (std::vector<std::string>{"system:masters", "system:authenticated"}));
}

TEST(Accept, FirstClauseThatCanBeMadeWins) {
  struct {
    std::string_view accept;
    Form form;
    Encoding encoding;
  } const cases[] = {
      {"", Form::kObject, Encoding::kJson},
      {"*/*", Form::kObject, Encoding::kJson},
      {"application/vnd.kubernetes.protobuf, */*", Form::kObject, Encoding::kJson},
      {"application/yaml", Form::kObject, Encoding::kYaml},
      {"application/json;q=0.5,application/yaml", Form::kObject, Encoding::kYaml},
      {kTable, Form::kTable, Encoding::kJson},
      {"application/json;as=Table;v=v2;g=meta.k8s.io,application/json", Form::kObject,
       Encoding::kJson},
      {"application/json ; as=\"PartialObjectMetadata\" ; v=v1 ; g=meta.k8s.io", Form::kPartial,
       Encoding::kJson},
  };
  for (const auto& c : cases) {
    const auto got = negotiate(c.accept, {});
    ASSERT_TRUE(got) << c.accept;
    EXPECT_EQ(got->form, c.form) << c.accept;
    EXPECT_EQ(got->encoding, c.encoding) << c.accept;
  }
  for (const std::string_view accept :
       {"text/html", "application/json;q=0", ",;=", "application/cbor"}) {
    EXPECT_FALSE(negotiate(accept, {})) << accept;
  }
}

TEST(EventBytes, OneEventIsSerialisedOnceForAForm) {
  EventBytes bytes;
  const Kind& kind = *test_kinds().find({"", "v1", "pods"});
  const WatchForm plain{&kind, {}, RowObject::kMetadata};
  const WatchForm table{&kind, {Encoding::kJson, Form::kTable, "v1"}, RowObject::kMetadata};
  const kube::WatchEvent event{
      kube::WatchEvent::Type::kAdded,
      kube::Object(Value::object({{"metadata", Value::object({{"name", "p"}})}}))};
  const auto first = bytes.encode(event, plain, true, {});
  EXPECT_EQ(*first, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"p\"}}}\n");
  EXPECT_EQ(bytes.encode(event, plain, false, {}), first);
  EXPECT_NE(bytes.encode(event, table, true, {}), first);
  EXPECT_NE(bytes.encode(event, table, true, {}), bytes.encode(event, table, false, {}));
  for (int i = 0; i < 100; ++i) {
    bytes.encode({kube::WatchEvent::Type::kAdded, kube::Object(Value::object({{"i", i}}))}, plain,
                 false, {});
  }
  EXPECT_NE(bytes.encode(event, plain, false, {}), first);
}

TEST(StatusBody, WarningsCannotBreakTheHeader) {
  EXPECT_EQ(warning_header("a \"b\"\r\nX: y"), "299 - \"a \\\"b\\\"  X: y\"");
}

TEST(StatusBody, DetailsFollowTheCode) {
  const StatusSubject pod{"", "pods", "Pod", "p", ""};
  EXPECT_FALSE(status_body({Code::kBadRequest, "m", {}}, pod).contains("details"));
  EXPECT_EQ(
      status_body({Code::kInvalid, "m", {{"FieldValueInvalid", "x", "spec.a"}}}, pod)["details"]
          .dump(),
      R"({"causes":[{"field":"spec.a","message":"x","reason":"FieldValueInvalid"}],)"
      R"("kind":"Pod","name":"p"})");
  EXPECT_EQ(status_body({Code::kNotFound, "namespaces \"x\" not found", {}}, pod)["details"].dump(),
            R"({"kind":"namespaces","name":"x"})");
  EXPECT_EQ(status_body({Code::kNotFound, "jobs.batch \"x\" not found", {}})["details"].dump(),
            R"({"group":"batch","kind":"jobs","name":"x"})");
  EXPECT_EQ(status_body({Code::kUnavailable, "m", {}})["details"]["retryAfterSeconds"].as_int(), 1);
  EXPECT_EQ(status_body({Code::kExpired, "m", {}})["code"].as_int(), 410);
  EXPECT_EQ(status_body({Code::kMethodNotAllowed, "m", {}}, pod)["details"].dump(), "{}");
  EXPECT_EQ(status_body({Code::kInvalid,
                         "ListOptions.meta.k8s.io \"\" is invalid: a: b",
                         {{"FieldValueForbidden", "b", "a"}}},
                        pod)["details"]["kind"]
                .as_string(),
            "ListOptions");
  const base::Error future{Code::kTimeout, "Too large", {{"ResourceVersionTooLarge", "m", ""}}};
  EXPECT_EQ(status_body(future)["message"].as_string(), "Timeout: Too large");
  EXPECT_EQ(status_body(future)["details"]["retryAfterSeconds"].as_int(), 1);
}

}  // namespace
}  // namespace tessera::apiserver
