// For tests: a Front on an Api in memory, and requests as HTTP would bring them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/api_fixture.h"
#include "apiserver/auth.h"
#include "apiserver/front.h"

namespace tessera::apiserver {

struct TestAnswer : public http::Responder {
  void send(http::Response response) override {
    EXPECT_FALSE(answered);
    answered = true;
    status = response.status;
    body = std::move(response.body);
    headers = std::move(response.headers);
  }
  void begin_stream(int code, std::string, http::Headers) override {
    answered = streaming = true;
    status = code;
  }
  bool write(std::string) override { return true; }
  void end_stream() override {}
  void on_closed(std::function<void()> callback) override { closed = std::move(callback); }

  json::Value json() const { return json::parse(body).value_or(json::Value()); }
  std::string message() const { return json()["message"].str(); }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }

  bool answered = false;
  bool streaming = false;
  int status = 0;
  std::string body;
  http::Headers headers;
  std::function<void()> closed;
};

class FrontBench {
 public:
  explicit FrontBench(FrontOptions options = {}) {
    options.tokens = {{"admin", {.user = "admin", .groups = {"system:masters"}}},
                      {"jane", {.user = "jane", .groups = {"team"}}},
                      {"joe", {.user = "joe"}}};
    front_ = std::make_unique<Front>(*api_, std::move(options));
    settle();
    must("/api/v1/namespaces", R"({"kind":"Namespace","metadata":{"name":"work"}})");
    must("/api/v1/namespaces/work/serviceaccounts",
         R"({"kind":"ServiceAccount","metadata":{"name":"bot"}})");
  }

  TestApi& api() { return api_; }
  void settle() { api_.loop().run_ready(); }

  std::shared_ptr<TestAnswer> start(std::string token, std::string method, std::string target,
                                    std::string body = {}, http::Headers headers = {}) {
    http::Request request;
    request.method = std::move(method);
    request.target = std::move(target);
    request.peer_address = "192.0.2.7";
    request.headers = std::move(headers);
    request.body = std::move(body);
    if (!request.body.empty()) request.headers.emplace_back("content-type", "application/json");
    if (!token.empty()) request.headers.emplace_back("authorization", "Bearer " + token);
    auto answer = std::make_shared<TestAnswer>();
    front_->handle(std::move(request), answer);
    return answer;
  }
  std::shared_ptr<TestAnswer> send(std::string token, std::string method, std::string target,
                                   std::string body = {}, http::Headers headers = {}) {
    auto answer = start(std::move(token), std::move(method), std::move(target), std::move(body),
                        std::move(headers));
    settle();
    EXPECT_TRUE(answer->answered);
    return answer;
  }
  std::shared_ptr<TestAnswer> get(std::string token, std::string target,
                                  http::Headers headers = {}) {
    return send(std::move(token), "GET", std::move(target), {}, std::move(headers));
  }
  std::shared_ptr<TestAnswer> post(std::string token, std::string target, std::string body) {
    return send(std::move(token), "POST", std::move(target), std::move(body));
  }
  // As the admin; it must succeed.
  json::Value must(std::string target, std::string body) {
    const auto answer = post("admin", std::move(target), std::move(body));
    EXPECT_EQ(answer->status, 201) << answer->body;
    return answer->json();
  }
  // Binds a ClusterRole in a namespace, or everywhere where that is empty.
  void bind(std::string_view name, std::string_view ns, std::string_view role,
            std::string_view subject) {
    const std::string kind = ns.empty() ? "ClusterRoleBinding" : "RoleBinding";
    must(ns.empty() ? std::string(kRbac) + "clusterrolebindings"
                    : fmt::format("{}namespaces/{}/rolebindings", kRbac, ns),
         fmt::format(R"({{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"{}",
           "metadata":{{"name":"{}"}},"roleRef":{{"apiGroup":"rbac.authorization.k8s.io",
           "kind":"ClusterRole","name":"{}"}},"subjects":[{}]}})",
                     kind, name, role, subject));
  }
  static std::string user(std::string_view name) {
    return fmt::format(R"({{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"{}"}})",
                       name);
  }
  // A token for work/bot.
  std::string account_token(std::string spec = "{}") {
    const auto made = must(
        "/api/v1/namespaces/work/serviceaccounts/bot/token",
        R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":)" + spec + "}");
    return made["status"]["token"].str();
  }

  static constexpr std::string_view kRbac = "/apis/rbac.authorization.k8s.io/v1/";

 private:
  TestApi api_;
  std::unique_ptr<Front> front_;
};

}  // namespace tessera::apiserver
