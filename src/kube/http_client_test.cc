#include "kube/http_client.h"

#include <gtest/gtest.h>

#include <future>

#include "http/server.h"
#include "json/parse.h"

namespace tessera::kube {
namespace {

using base::Code;

Request request_of(Verb verb, Gvr gvr, std::string ns, std::string name, std::string sub = "") {
  Request out;
  out.verb = verb;
  out.gvr = std::move(gvr);
  out.ns = std::move(ns);
  out.name = std::move(name);
  out.subresource = std::move(sub);
  return out;
}

TEST(HttpRequest, Paths_follow_group_namespace_and_subresource) {
  EXPECT_EQ(path_of(request_of(Verb::kGet, core_v1("pods"), "ns", "p", "status")),
            "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(path_of(request_of(Verb::kList, {"apps", "v1", "deployments"}, "", "")),
            "/apis/apps/v1/deployments");
  EXPECT_EQ(path_of(request_of(Verb::kGet, core_v1("nodes"), "", "a/b")), "/api/v1/nodes/a%2Fb");
}

TEST(HttpRequest, Patches_carry_their_media_type_and_watches_their_query) {
  Request patch = request_of(Verb::kPatch, core_v1("pods"), "ns", "p");
  patch.body = json::Value::object({{"a", 1}});
  patch.patch_type = PatchType::kStrategic;
  patch.query = {{"fieldManager", "me & you"}};
  const auto made = to_http(patch, false);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->method, "PATCH");
  EXPECT_EQ(made->target, "/api/v1/namespaces/ns/pods/p?fieldManager=me%20%26%20you");
  EXPECT_EQ(made->headers[1].second, "application/strategic-merge-patch+json");
  EXPECT_EQ(made->body, R"({"a":1})");
  EXPECT_EQ(to_http(request_of(Verb::kList, core_v1("pods"), "", ""), true)->target,
            "/api/v1/pods?watch=true");
  EXPECT_FALSE(to_http(request_of(Verb::kGet, core_v1("pods"), "ns", ""), false));
  EXPECT_FALSE(to_http(Request(), false));
}

TEST(HttpAnswer, A_Status_becomes_an_error_with_its_causes) {
  const auto reply =
      from_http({422, {}, R"({"kind":"Status","status":"Failure","reason":"Invalid","code":422,
        "message":"Pod \"p\" is invalid","details":{"causes":[
          {"reason":"FieldValueRequired","message":"Required value","field":"spec"}]}})"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, Code::kInvalid);
  EXPECT_EQ(reply.error().message, "Pod \"p\" is invalid");
  ASSERT_EQ(reply.error().causes.size(), 1U);
  EXPECT_EQ(reply.error().causes[0].field, "spec");
  const auto code = [](int status, const char* body) {
    return from_http({status, {}, body}).error().code;
  };
  EXPECT_EQ(code(409, R"({"kind":"Status","reason":"AlreadyExists","code":409})"),
            Code::kAlreadyExists);
  EXPECT_EQ(code(410, R"({"kind":"Status","reason":"Gone","code":410})"), Code::kExpired);
  EXPECT_EQ(code(503, "try later"), Code::kUnavailable);
  EXPECT_EQ(code(404, "<html>"), Code::kNotFound);
  EXPECT_EQ(code(200, "<html>"), Code::kUnavailable);
  EXPECT_EQ(from_http({200, {}, R"({"a":1})"})->dump(), R"({"a":1})");
}

TEST(WatchLines, Cuts_events_from_chunks_of_any_size) {
  const std::string stream =
      "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n\r\n"
      "{\"type\":\"BOOKMARK\",\"object\":{}}\n{\"type\":\"DELETED\",\"object\":{}}\n";
  for (size_t size = 1; size <= stream.size(); ++size) {
    WatchLines lines;
    std::vector<WatchEvent> all;
    for (size_t at = 0; at < stream.size(); at += size) {
      auto events = lines.feed(std::string_view(stream).substr(at, size));
      ASSERT_TRUE(events) << events.error().message;
      for (WatchEvent& event : *events) all.push_back(std::move(event));
    }
    ASSERT_EQ(all.size(), 3U) << "chunks of " << size;
    EXPECT_EQ(all[0].type, WatchEvent::Type::kAdded);
    EXPECT_EQ(all[0].object.name(), "a");
    EXPECT_EQ(all[2].type, WatchEvent::Type::kDeleted);
  }
}

TEST(WatchLines, Refuses_what_is_no_event) {
  EXPECT_FALSE(WatchLines().feed("{]\n"));
  EXPECT_FALSE(WatchLines().feed("{\"type\":\"NEW\"}\n"));
  EXPECT_EQ(WatchLines(10).feed("{\"aaaaaaaaaaaa").error().code, Code::kTooLarge);
}

// Against a real server on loopback, without TLS.
class HttpClientTest : public testing::Test {
 protected:
  void serve(http::Handler handler) {
    server_ = std::make_unique<http::Server>(http::ServerOptions(), std::move(handler));
    ASSERT_TRUE(server_->start());
    http::ClientOptions options;
    options.base_url = fmt::format("http://127.0.0.1:{}", server_->port());
    client = std::make_unique<HttpClient>(options, loop);
  }
  void TearDown() override {
    client.reset();
    loop.stop();
    if (server_) server_->stop();
  }
  Reply call(Request request) {
    std::promise<Reply> promise;
    client->call(std::move(request), [&](Reply reply) { promise.set_value(std::move(reply)); });
    return promise.get_future().get();
  }

  base::LoopThread loop{"test"};
  std::unique_ptr<http::Server> server_;
  std::unique_ptr<HttpClient> client;
};

TEST_F(HttpClientTest, Calls_go_out_and_answers_come_back) {
  serve([](http::Request request, std::shared_ptr<http::Responder> out) {
    if (request.method == "DELETE") {
      out->send({404, {}, R"({"kind":"Status","status":"Failure","reason":"NotFound","code":404,
                              "message":"pods \"p\" not found"})"});
      return;
    }
    out->send({200,
               {},
               json::Value::object(
                   {{"method", request.method}, {"target", request.target}, {"body", request.body}})
                   .dump()});
  });
  Request create = request_of(Verb::kCreate, core_v1("pods"), "ns", "");
  create.body = json::Value::object({{"kind", "Pod"}});
  const Reply made = call(create);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["method"].as_string(), "POST");
  EXPECT_EQ((*made)["target"].as_string(), "/api/v1/namespaces/ns/pods");
  EXPECT_EQ((*made)["body"].as_string(), R"({"kind":"Pod"})");
  const Reply gone = call(request_of(Verb::kDelete, core_v1("pods"), "ns", "p"));
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::kNotFound);
  EXPECT_EQ(gone.error().message, "pods \"p\" not found");
  EXPECT_EQ(call(request_of(Verb::kGet, core_v1("pods"), "ns", "")).error().code,
            Code::kBadRequest);
}

TEST_F(HttpClientTest, Watches_stream_events_and_end_with_the_reason) {
  serve([](http::Request request, std::shared_ptr<http::Responder> out) {
    if (request.target.find("resourceVersion=1&") != std::string::npos) {
      out->send({410, {}, R"({"kind":"Status","status":"Failure","reason":"Expired","code":410})"});
      return;
    }
    out->begin_stream(200, "application/json");
    out->write("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}\n{\"type\":\"MOD");
    out->write("IFIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n");
    out->end_stream();
  });
  const auto watch = [&](const char* version, std::string& names) {
    Request request = request_of(Verb::kList, core_v1("pods"), "", "");
    request.query = {{"resourceVersion", version}};
    std::promise<base::Status> closed;
    auto subscription = client->watch(
        request, [&](WatchEvent event) { names += event.object.name(); },
        [&](base::Status status) { closed.set_value(std::move(status)); });
    base::Status status = closed.get_future().get();
    std::promise<void> dropped;
    loop.post([&] {
      subscription.reset();
      dropped.set_value();
    });
    dropped.get_future().get();
    return status;
  };
  std::string names;
  EXPECT_TRUE(watch("5", names));
  EXPECT_EQ(names, "ab");
  const base::Status expired = watch("1", names);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().code, Code::kExpired);
}

TEST(HttpAnswer, What_objects_have_in_common_is_kept_once) {
  json::Interner interner;
  const char* pod = R"({"metadata":{"name":"NAME","labels":{"a-long-label-key":"b"}},
    "spec":{"containers":[{"name":"c","image":"registry.example/image"}]},"status":{}})";
  std::string text = R"({"kind":"PodList","items":[)" + std::string(pod) + "," + pod + "]}";
  json::Value list = json::parse(text).value();
  const json::Value before = list;
  share_parts(interner, list);
  EXPECT_EQ(list, before);
  const auto part = [&](size_t i, const char* a, const char* b) -> const json::Value& {
    return list["items"].at(i).get(a, b);
  };
  EXPECT_TRUE(part(0, "spec", "containers").same_node(part(1, "spec", "containers")));
  EXPECT_TRUE(part(0, "metadata", "labels").same_node(part(1, "metadata", "labels")));
  WatchLines lines(size_t{1} << 20, Detail::kLean, &interner);
  std::string event = R"({"type":"ADDED","object":)" + std::string(pod) + "}";
  std::erase(event, '\n');
  const auto events = lines.feed(event + "\n");
  ASSERT_EQ(events->size(), 1U);
  EXPECT_TRUE(
      events->front().object.get("spec", "containers").same_node(part(0, "spec", "containers")));
}

TEST(HttpAnswer, Managed_fields_are_left_out_where_nobody_wants_them) {
  const char* pod = R"({"kind":"Pod","metadata":{"managedFields":[{"f:spec":{}}],"name":"p"}})";
  const http::Response response{200, {}, pod};
  EXPECT_TRUE(from_http(response)->get("metadata").contains("managedFields"));
  EXPECT_EQ(from_http(response, Detail::kLean)->get("metadata").dump(), R"({"name":"p"})");
  WatchLines lines(size_t{1} << 20, Detail::kLean);
  const auto events = lines.feed(R"({"type":"ADDED","object":)" + std::string(pod) + "}\n");
  ASSERT_EQ(events->size(), 1U);
  EXPECT_EQ(events->front().object.metadata().dump(), R"({"name":"p"})");
}

}  // namespace
}  // namespace tessera::kube
