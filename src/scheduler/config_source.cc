#include "scheduler/config_source.h"

#include <optional>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "kube/informer.h"

namespace tessera::scheduler {
namespace {

using base::Code;

constexpr base::Duration kLookPeriod = base::seconds(2);

// What both sources do with the versions that they find.
class Versions : public std::enable_shared_from_this<Versions> {
 public:
  Versions(std::string origin, ConfigSource::Handlers handlers)
      : origin_(std::move(origin)), handlers_(std::move(handlers)) {}

  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }
  const std::string& origin() const { return origin_; }

  // A text, or why there is none. The same again does nothing.
  base::Status offer(const base::Result<std::string>& found) {
    const auto self = shared_from_this();  // handlers may destroy the source
    std::string seen = found ? "=" + *found : "!" + found.error().message;
    if (stopped_ || seen == last_) return {};
    last_ = std::move(seen);
    base::Status taken = found ? take(*found) : base::Status(base::error(found.error()));
    if (taken) {
      if (handlers_.on_config) handlers_.on_config(*good_);
      return {};
    }
    base::log_warn("scheduler configuration refused error=\"{}\" in_force={}",
                   taken.error().message, good_ ? "the last good one" : "none");
    return taken;
  }
  void tell(const base::Status& taken) {
    if (!taken && !stopped_ && handlers_.on_refused) handlers_.on_refused(taken.error());
  }

 private:
  base::Status take(const std::string& text) {
    TS_TRY(SchedulerConfig next, parse_config(text, origin_));
    if (good_) {
      if (const auto may = can_change(*good_, next); !may) {
        return base::error(may.error().in(origin_));
      }
    }
    good_ = std::move(next);
    return {};
  }

  std::string origin_;
  ConfigSource::Handlers handlers_;
  std::string last_;
  std::optional<SchedulerConfig> good_;
  bool stopped_ = false;
};

class FileSource : public ConfigSource {
 public:
  FileSource(base::Executor& executor, std::string path, Handlers handlers)
      : executor_(executor),
        versions_(std::make_shared<Versions>(std::move(path), std::move(handlers))) {}
  ~FileSource() override { versions_->stop(); }

  base::Status start() override {
    const auto versions = versions_;
    base::Executor& executor = executor_;
    auto first = base::read_file(versions->origin(), kConfigBytesMax);
    if (first) {
      TS_TRY_STATUS(versions->offer(first));
      look_later(executor, versions, std::move(first));
      return {};
    }
    return base::error(first.error());
  }

 private:
  static bool same(const base::Result<std::string>& a, const base::Result<std::string>& b) {
    if (a.has_value() != b.has_value()) return false;
    return a ? *a == *b : a.error().message == b.error().message;
  }

  static void look_later(base::Executor& executor, const std::shared_ptr<Versions>& versions,
                         base::Result<std::string> before) {
    executor.post_after(kLookPeriod,
                        [&executor, weak = std::weak_ptr(versions), before = std::move(before)] {
                          const auto self = weak.lock();
                          if (!self || self->stopped()) return;
                          auto now = base::read_file(self->origin(), kConfigBytesMax);
                          if (same(now, before)) self->tell(self->offer(now));
                          if (!self->stopped()) look_later(executor, self, std::move(now));
                        });
  }

  base::Executor& executor_;
  std::shared_ptr<Versions> versions_;
};

class ConfigMapSource : public ConfigSource {
 public:
  ConfigMapSource(kube::Client& client, base::Executor& executor, base::Random random,
                  const std::string& ns, const std::string& name, Handlers handlers)
      : versions_(std::make_shared<Versions>("configmap " + ns + "/" + name, std::move(handlers))),
        seen_(std::make_shared<bool>(false)) {
    kube::Informer::Options options;
    options.gvr = kube::core_v1("configmaps");
    options.ns = ns;
    options.field_selector = "metadata.name=" + name;
    // Nothing of this source is touched once a handler has destroyed it.
    informer_ = std::make_unique<kube::Informer>(
        client, executor, random, std::move(options),
        kube::Informer::Handlers{
            .on_change =
                [versions = versions_, seen = seen_](const kube::Object&,
                                                     const kube::Object& after) {
                  *seen = true;
                  versions->tell(versions->offer(text_of(after, versions->origin())));
                },
            .on_synced =
                [versions = versions_, seen = seen_] {
                  if (*seen) return;
                  versions->tell(versions->offer(
                      base::error(Code::kNotFound, "{} does not exist; make it with the key {}",
                                  versions->origin(), kConfigKey)));
                }});
  }
  ~ConfigMapSource() override { versions_->stop(); }

  base::Status start() override {
    informer_->start();
    return {};
  }

 private:
  static base::Result<std::string> text_of(const kube::Object& map, std::string_view origin) {
    if (!map) return base::error(Code::kNotFound, "{} has been deleted; make it again", origin);
    const json::Value* text = map["data"].find(kConfigKey);
    if (text == nullptr) {
      return base::error(Code::kInvalid, "{} has no key {} in data; add it", origin, kConfigKey);
    }
    return text->str();
  }

  std::shared_ptr<Versions> versions_;
  std::shared_ptr<bool> seen_;
  std::unique_ptr<kube::Informer> informer_;
};

}  // namespace

std::unique_ptr<ConfigSource> ConfigSource::from_file(base::Executor& executor, std::string path,
                                                      Handlers handlers) {
  return std::make_unique<FileSource>(executor, std::move(path), std::move(handlers));
}

std::unique_ptr<ConfigSource> ConfigSource::from_config_map(kube::Client& client,
                                                            base::Executor& executor,
                                                            base::Random random, std::string ns,
                                                            std::string name, Handlers handlers) {
  return std::make_unique<ConfigMapSource>(client, executor, random, ns, name, std::move(handlers));
}

}  // namespace tessera::scheduler
