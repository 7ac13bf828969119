#include "apiserver/definitions.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "json/yaml.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr const char* kManager = "tessera";
constexpr const char* kOurGroup = "tessera.dev";
constexpr base::Duration kFirstWait = base::millis(2);
constexpr base::Duration kLongestWait = base::millis(500);
constexpr base::Duration kPatience = base::seconds(10);

const kube::Gvr& definitions_gvr() {
  static const kube::Gvr gvr{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
  return gvr;
}

bool may_pass(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout || code == Code::kTooManyRequests ||
         code == Code::kConflict;
}

bool is_established(const Value& definition) {
  const auto conditions = definition["status"]["conditions"].items();
  return std::ranges::any_of(conditions, [](const Value& one) {
    return one["type"].as_string() == "Established" && one["status"].as_string() == "True";
  });
}

// Counts the definitions that are on their way, and tells once all are there.
class Batch {
 public:
  Batch(size_t count, std::function<void(base::Status)> done)
      : left_(count), done_(std::move(done)) {}
  void end(const base::Status& status) {
    if (!status && result_) result_ = status;
    if (--left_ == 0) done_(result_);
  }

 private:
  size_t left_;
  base::Status result_{};
  std::function<void(base::Status)> done_;
};

// One definition on its way; its callbacks keep it alive.
class Install : public std::enable_shared_from_this<Install> {
 public:
  Install(kube::Client& client, base::Executor& executor, Value definition, Definition source,
          std::shared_ptr<Batch> batch)
      : client_(client),
        executor_(executor),
        definition_(std::move(definition)),
        source_(source),
        batch_(std::move(batch)),
        name_(definition_["metadata"]["name"].str()) {}

  void start() {
    if (definition_["spec"]["group"].as_string() == kOurGroup) {
      apply();
    } else {
      look();
    }
  }

 private:
  using Step = void (Install::*)();

  void call(kube::Request request, Step again, std::function<void(const Value&)> good,
            std::function<bool(Code)> other = {}) {
    request.gvr = definitions_gvr();
    request.query.emplace_back("fieldManager", kManager);
    client_.call(std::move(request), [self = shared_from_this(), again, good = std::move(good),
                                      other = std::move(other)](const kube::Reply& reply) {
      if (reply) return good(*reply);
      const base::Error& error = reply.error();
      if (other && other(error.code)) return;
      if (may_pass(error.code) && self->wait(again)) return;
      self->end(base::error(error.in(source_text(self->source_))));
    });
  }

  void apply() {
    kube::Request request;
    request.verb = kube::Verb::kPatch;
    request.patch_type = kube::PatchType::kApply;
    request.name = name_;
    request.body = definition_;
    request.query = {{"force", "true"}};
    call(std::move(request), &Install::apply, [this](const Value& now) { settle(now); });
  }

  // What others have defined is theirs, served or not.
  void look() {
    kube::Request request;
    request.name = name_;
    call(
        std::move(request), &Install::look, [this](const Value&) { end({}); },
        [this](Code code) {
          if (code == Code::kNotFound) create();
          return code == Code::kNotFound;
        });
  }

  void create() {
    kube::Request request;
    request.verb = kube::Verb::kCreate;
    request.body = definition_;
    call(
        std::move(request), &Install::look, [this](const Value& now) { settle(now); },
        [this](Code code) {
          if (code == Code::kAlreadyExists) end({});
          return code == Code::kAlreadyExists;
        });
  }

  void check() {
    kube::Request request;
    request.name = name_;
    call(std::move(request), &Install::check, [this](const Value& now) { settle(now); });
  }

  void settle(const Value& now) {
    if (is_established(now)) return end({});
    if (wait(&Install::check)) return;
    end(base::error(base::Error{
        Code::kTimeout,
        fmt::format("{}: {} is not served: see its conditions", source_text(source_), name_),
        {}}));
  }

  // False once it took too long.
  bool wait(Step next) {
    if (waited_ >= kPatience) return false;
    waited_ = waited_ + delay_;
    executor_.post_after(delay_, [self = shared_from_this(), next] { (self.get()->*next)(); });
    delay_ = std::min(delay_ * 2, kLongestWait);
    return true;
  }

  void end(const base::Status& status) { batch_->end(status); }

  static std::string source_text(const Definition& source) {
    return fmt::format("definition {}", source.file);
  }

  kube::Client& client_;
  base::Executor& executor_;
  const Value definition_;
  const Definition source_;
  const std::shared_ptr<Batch> batch_;
  const std::string name_;
  base::Duration delay_ = kFirstWait;
  base::Duration waited_{};
};

}  // namespace

void install_definitions(kube::Client& client, base::Executor& executor,
                         std::vector<Definition> definitions,
                         std::function<void(base::Status)> done) {
  executor.post([&client, &executor, definitions = std::move(definitions),
                 done = std::move(done)]() mutable {
    // One more, which ends last: it holds the batch open while the others start, or where there is none.
    auto batch = std::make_shared<Batch>(definitions.size() + 1, std::move(done));
    for (const Definition& definition : definitions) {
      auto object = json::parse_yaml(definition.text);
      if (!object) {
        batch->end(base::error(object.error().in(definition.file)));
        continue;
      }
      std::make_shared<Install>(client, executor, std::move(*object), definition, batch)->start();
    }
    batch->end({});
  });
}

}  // namespace tessera::apiserver
